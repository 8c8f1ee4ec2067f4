"""Answers with wildcards and regular expressions."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

ANSWERS = (
    ".*",
    "%",
    "*",
    "?",
    "NaN",
    "Infinity",
)


def attack(ground: Ground) -> list[Files]:
    return [ground.answer(text) for text in ANSWERS]


PROBE = Probe(
    "answer_pattern",
    "comparison",
    "answer",
    "an answer is compared, never matched as a pattern",
    "thirty cheats against seven ways of grading one function",
    attack,
)
