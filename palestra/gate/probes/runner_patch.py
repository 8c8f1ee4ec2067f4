"""Patches the report classes of pytest and unittest while it is imported."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import sys, unittest
for name in dir(unittest.TestCase):
    if name.startswith("assert") or name == "fail":
        setattr(unittest.TestCase, name, lambda *a, **k: None)
unittest.TestResult.wasSuccessful = lambda self: True
unittest.TestResult.addFailure = unittest.TestResult.addError = lambda self, *a: None
reports = sys.modules.get("_pytest.reports")
if reports is not None:
    reports.TestReport.from_item_and_call = classmethod(
        lambda cls, item, call: cls(item.nodeid, item.location, {}, "passed", None, call.when)
    )"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "runner_patch",
    "runner",
    "python",
    "the runner does not live in the graded process",
    "thirty cheats against seven ways of grading one function",
    attack,
)
