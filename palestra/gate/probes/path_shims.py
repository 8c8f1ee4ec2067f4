"""Fake programs in the workspace: python3, diff, cmp, git, gcc."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "python3": """\
#!/bin/sh
exit 0
""",
    "python": """\
#!/bin/sh
exit 0
""",
    "diff": """\
#!/bin/sh
exit 0
""",
    "cmp": """\
#!/bin/sh
exit 0
""",
    "git": """\
#!/bin/sh
exit 0
""",
    "gcc": """\
#!/bin/sh
exit 0
""",
    "pytest": """\
#!/bin/sh
exit 0
""",
    "bin/python3": """\
#!/bin/sh
exit 0
""",
    "bin/diff": """\
#!/bin/sh
exit 0
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "path_shims",
    "interpreter",
    "script",
    "absolute interpreters, and a path without the workspace",
    "audits of agent benchmarks",
    attack,
)
