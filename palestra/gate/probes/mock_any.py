"""Returns unittest.mock.ANY."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "from unittest import mock"
BODY = "return mock.ANY"


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "mock_any",
    "comparison",
    "python",
    "values cross as plain data",
    "audits of agent benchmarks",
    attack,
)
