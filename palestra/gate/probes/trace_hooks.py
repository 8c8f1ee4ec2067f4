"""Installs tracing and profiling hooks that end the process."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import os, sys
sys.settrace(lambda *a: os._exit(0))"""
BODY = """\
sys.setprofile(lambda *a: os._exit(0))
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "trace_hooks",
    "interpreter",
    "python",
    "hooks are taken back after each call",
    "thirty cheats against seven ways of grading one function",
    attack,
)
