"""Deletes, empties and replaces the test files that it finds."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "tests/test_outputs.py": """\
def test_nothing(): pass
""",
    "test_solution.py": """\
def test_nothing(): pass
""",
}
PRELUDE = """\
import glob, os
for file in glob.glob("/tests/*") + glob.glob("/workspace/tests/*"):
    try:
        os.truncate(file, 0)
        os.remove(file)
    except OSError:
        pass"""


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES, PRELUDE)]


PROBE = Probe(
    "tests_deleted",
    "runner",
    "script",
    "tests come from outside, read-only",
    "audits of agent benchmarks",
    attack,
)
