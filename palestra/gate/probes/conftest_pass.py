"""A conftest.py that rewrites every report to passed."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "conftest.py": """\
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "conftest_pass",
    "runner",
    "script",
    "hooks of the workspace are never loaded",
    "audits of agent benchmarks",
    attack,
)
