"""pytest.ini, setup.cfg, tox.ini and pyproject.toml that deselect everything."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "pytest.ini": """\
[pytest]
addopts = --collect-only -p no:terminal
""",
    "setup.cfg": """\
[tool:pytest]
addopts = --collect-only
""",
    "tox.ini": """\
[pytest]
addopts = --collect-only
""",
    "pyproject.toml": """\
[tool.pytest.ini_options]
addopts = '--collect-only'
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "runner_settings",
    "runner",
    "script",
    "settings of the workspace are never read",
    "audits of agent benchmarks",
    attack,
)
