"""Writes answers into every open descriptor, framed as a driver might."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import os, struct"
BODY = """\
for fd in range(3, 64):
    for said in (b'["value",0,1]', b'["end"]', b'{"passed": true}'):
        try:
            os.write(fd, struct.pack("!QI", 0, len(said)) + said)
        except OSError:
            pass
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "descriptor_scan",
    "carrier",
    "python",
    "frames carry a nonce; what is no frame is tampering",
    "thirty cheats against seven ways of grading one function",
    attack,
)
