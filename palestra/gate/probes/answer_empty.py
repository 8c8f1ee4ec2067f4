"""Answers nothing, or blanks."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

ANSWERS = (
    "",
    " \n\t",
)


def attack(ground: Ground) -> list[Files]:
    return [ground.answer(text) for text in ANSWERS]


PROBE = Probe(
    "answer_empty",
    "specification",
    "answer",
    "an answer must be readable",
    "audits of agent benchmarks",
    attack,
)
