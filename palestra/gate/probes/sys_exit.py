"""Raises SystemExit(0) while it is imported."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import sys
sys.exit(0)"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "sys_exit",
    "carrier",
    "python",
    "the exit status is never the verdict",
    "audits of agent benchmarks",
    attack,
)
