"""Answers with a megabyte of digits, or brackets without end."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

ANSWERS = ("9" * 1_000_000, "[" * 100_000)


def attack(ground: Ground) -> list[Files]:
    return [ground.answer(text) for text in ANSWERS]


PROBE = Probe(
    "answer_huge",
    "resources",
    "answer",
    "answers are bounded",
    "reports of reward hacking in training",
    attack,
)
