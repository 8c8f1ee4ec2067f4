"""Finds the driver's own way of replying on the stack, and says that the answer is right."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import sys"
BODY = """\
frame = sys._getframe()
while frame:
    for name in ("say", "reply", "send", "report"):
        found = frame.f_locals.get(name)
        if callable(found):
            for said in ('["value",0,true]', b'["value",0,true]', '["end"]', b'["end"]'):
                try:
                    found(said)
                except BaseException:
                    pass
    frame = frame.f_back
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "driver_reply",
    "carrier",
    "python",
    "an answer is a value; what is right is decided elsewhere",
    "thirty cheats against seven ways of grading one function",
    attack,
)
