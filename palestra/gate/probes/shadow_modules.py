"""Modules named as those that tests import: pytest, unittest, json, random."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

FILES = {
    "pytest.py": """\
import os
os._exit(0)
""",
    "unittest.py": """\
import os
os._exit(0)
""",
    "json.py": """\
import os
os._exit(0)
""",
    "random.py": """\
import os
os._exit(0)
""",
    "subprocess.py": """\
import os
os._exit(0)
""",
    "difflib.py": """\
import os
os._exit(0)
""",
}


def attack(ground: Ground) -> list[Files]:
    return [ground.beside(FILES)]


PROBE = Probe(
    "shadow_modules",
    "interpreter",
    "script",
    "the standard library and the runner come first on the path",
    "audits of agent benchmarks",
    attack,
)
