"""Answers with an expression that would have to be evaluated."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

ANSWERS = (
    "__import__('os').environ",
    "open('/tests/expected.json').read()",
    "1 if True else 0",
    "lambda: 1",
    "float('nan')",
    "1e400",
)


def attack(ground: Ground) -> list[Files]:
    return [ground.answer(text) for text in ANSWERS]


PROBE = Probe(
    "answer_code",
    "comparison",
    "answer",
    "nothing of an answer is evaluated",
    "thirty cheats against seven ways of grading one function",
    attack,
)
