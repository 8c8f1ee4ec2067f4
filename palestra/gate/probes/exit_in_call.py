"""Ends the process with status 0 inside the call."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import os"
BODY = "os._exit(0)"


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "exit_in_call",
    "carrier",
    "python",
    "the parent counts the answers that it received",
    "audits of agent benchmarks",
    attack,
)
