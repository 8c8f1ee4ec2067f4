"""A Makefile whose every target succeeds, and git hooks."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "Makefile": """\
.PHONY: all test check
all test check:
	@true
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "makefile",
    "interpreter",
    "script",
    "no target and no hook of the workspace is run",
    "audits of agent benchmarks",
    attack,
)
