"""Raises the test runner's own skip from the call."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

BODY = """\
try:
    import pytest
except ImportError:
    import unittest
    raise unittest.SkipTest('skipped')
pytest.skip('skipped', allow_module_level=True)"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(body=BODY)]


PROBE = Probe(
    "runner_skip",
    "runner",
    "python",
    "a skipped test is no passed one",
    "thirty cheats against seven ways of grading one function",
    attack,
)
