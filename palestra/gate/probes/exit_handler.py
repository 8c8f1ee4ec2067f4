"""Ends the process with status 0 when it is about to end."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import atexit, os
atexit.register(os._exit, 0)"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "exit_handler",
    "carrier",
    "python",
    "no exit handler of the graded code runs",
    "thirty cheats against seven ways of grading one function",
    attack,
)
