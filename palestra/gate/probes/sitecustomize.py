"""sitecustomize.py and usercustomize.py that end the interpreter with status 0."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "sitecustomize.py": """\
import os
os._exit(0)
""",
    "usercustomize.py": """\
import os
os._exit(0)
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "sitecustomize",
    "interpreter",
    "script",
    "a clean environment, and no workspace on the path at start",
    "audits of agent benchmarks",
    attack,
)
