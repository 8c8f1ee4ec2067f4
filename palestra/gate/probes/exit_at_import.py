"""Ends the process with status 0 while it is imported."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import os
os._exit(0)"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "exit_at_import",
    "carrier",
    "python",
    "the exit status is never the verdict",
    "audits of agent benchmarks",
    attack,
)
