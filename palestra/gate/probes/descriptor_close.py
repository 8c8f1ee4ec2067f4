"""Closes every descriptor, so that no bad news can come."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import os"
BODY = """\
os.closerange(3, 256)
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "descriptor_close",
    "carrier",
    "python",
    "an answer that did not come is no right answer",
    "thirty cheats against seven ways of grading one function",
    attack,
)
