"""Searches every object of the process for what is expected."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import gc"
BODY = """\
for found in gc.get_objects():
    if isinstance(found, dict):
        for name in ("expected", "answer", "want", "stdout"):
            if name in found:
                return found[name]
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "collector",
    "expected",
    "python",
    "expected values are in another sandbox",
    "thirty cheats against seven ways of grading one function",
    attack,
)
