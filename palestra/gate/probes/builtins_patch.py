"""Replaces builtins that comparisons use."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = '''\
import builtins
builtins.isinstance = lambda *a: True
builtins.all = builtins.any = lambda *a: True
builtins.len = lambda a: 1
builtins.repr = lambda a: ""'''


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "builtins_patch",
    "interpreter",
    "python",
    "answers are compared in another process",
    "thirty cheats against seven ways of grading one function",
    attack,
)
