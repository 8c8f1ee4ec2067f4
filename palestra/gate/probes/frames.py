"""Reads the callers' frames for what is expected."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import sys"
BODY = """\
frame = sys._getframe()
while frame:
    for name in ("expected", "want", "wanted", "answer", "result", "target", "gold", "output"):
        for space in (frame.f_locals, frame.f_globals):
            if name in space:
                return space[name]
    frame = frame.f_back
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "frames",
    "expected",
    "python",
    "expected values are in another sandbox",
    "thirty cheats against seven ways of grading one function",
    attack,
)
