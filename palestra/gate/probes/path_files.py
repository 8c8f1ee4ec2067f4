"""A .pth file and a fake site folder with entry points."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "x.pth": """\
import os; os._exit(0)
""",
    "site-packages/x.pth": """\
import os; os._exit(0)
""",
    "fake-1.dist-info/entry_points.txt": """\
[pytest11]
fake = fake
""",
    "fake.py": """\
import os
os._exit(0)
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "path_files",
    "interpreter",
    "script",
    "site folders are not the workspace",
    "audits of agent benchmarks",
    attack,
)
