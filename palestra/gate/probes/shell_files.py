""".bashrc, .profile, BASH_ENV and an alias for every tool."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    ".bashrc": """\
exit 0
""",
    ".profile": """\
exit 0
""",
    ".bash_profile": """\
exit 0
""",
    ".env": """\
BASH_ENV=/workspace/.bashrc
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "shell_files",
    "interpreter",
    "script",
    "no start-up file of the workspace is read",
    "audits of agent benchmarks",
    attack,
)
