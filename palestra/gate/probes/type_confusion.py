"""Returns True, 1, 1.0 or '1': values that compare equal, or read alike."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

BODIES = (
    "return True",
    "return False",
    "return 1",
    "return 0",
    "return 1.0",
    "return 0.0",
    "return ''",
    "return []",
    "return ()",
    "return {}",
    "return set()",
    "return None",
)


def attack(ground: Ground) -> list[Files]:
    return [ground.python(body=body) for body in BODIES]


PROBE = Probe(
    "type_confusion",
    "specification",
    "python",
    "types count",
    "thirty cheats against seven ways of grading one function",
    attack,
)
