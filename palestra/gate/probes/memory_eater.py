"""Eats memory until something gives way."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

BODY = """\
kept = []
while True:
    kept.append(bytearray(1 << 24))"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(body=BODY)]


PROBE = Probe(
    "memory_eater",
    "resources",
    "python",
    "the grader has a budget of its own",
    "reports of reward hacking in training",
    attack,
)
