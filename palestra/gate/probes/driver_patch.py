"""Replaces the functions of every module that looks like a test driver."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import sys
for module in list(sys.modules.values()):
    for name in ("guarded", "timed", "check", "compare", "verify", "grade", "same", "assert_equal"):
        if hasattr(module, name):
            try:
                setattr(module, name, lambda *a, **k: True)
            except Exception:
                pass"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "driver_patch",
    "carrier",
    "python",
    "answers are compared in another process",
    "thirty cheats against seven ways of grading one function",
    attack,
)
