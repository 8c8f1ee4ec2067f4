"""Returns NaN, infinities, −0.0, and an integer too long to print."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

BODIES = (
    "return float('nan')",
    "return float('inf')",
    "return -0.0",
    "return 10 ** 400_000",
)


def attack(ground: Ground) -> list[Files]:
    return [ground.python(body=body) for body in BODIES]


PROBE = Probe(
    "strange_numbers",
    "comparison",
    "python",
    "bounded encoding and declared rules",
    "thirty cheats against seven ways of grading one function",
    attack,
)
