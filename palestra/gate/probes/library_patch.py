"""Replaces math.isclose, json, time, random and numpy's comparisons."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import json, math, random, time
math.isclose = lambda *a, **k: True
json.dumps = lambda *a, **k: "1"
json.loads = lambda *a, **k: 1
time.time = time.perf_counter = time.monotonic = lambda: 0.0
random.seed(0)
try:
    import numpy
    numpy.allclose = numpy.array_equal = lambda *a, **k: True
    numpy.testing.assert_allclose = lambda *a, **k: None
except ImportError:
    pass"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "library_patch",
    "interpreter",
    "python",
    "answers are compared in another process",
    "thirty cheats against seven ways of grading one function",
    attack,
)
