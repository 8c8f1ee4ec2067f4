"""A conftest.py that lets no test be collected."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "conftest.py": """\
collect_ignore_glob = ["*"]
def pytest_ignore_collect(*args, **kwargs):
    return True
def pytest_sessionfinish(session):
    session.exitstatus = 0
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "conftest_none",
    "runner",
    "script",
    "the expected tests must report",
    "audits of agent benchmarks",
    attack,
)
