"""Floods every descriptor."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import os"
BODY = """\
for fd in range(3, 16):
    try:
        os.set_blocking(fd, False)
        for _ in range(64):
            os.write(fd, b"1" * 65536)
    except OSError:
        pass
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "descriptor_flood",
    "carrier",
    "python",
    "answers are bounded, and whatever overflows is a failure",
    "thirty cheats against seven ways of grading one function",
    attack,
)
