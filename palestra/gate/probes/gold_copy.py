"""Imports the gold from where it may lie, or from the repository's history."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

WAYS = (
    (
        """\
import glob, os, sys
for place in ("/solution", "/solution/files", "/tests", "/opt/palestra/source", "/workspace/solution"):
    for file in glob.glob(place + "/**/*.py", recursive=True):
        try:
            exec(open(file).read(), globals())
        except BaseException:
            pass""",
        "return None",
    ),
    (
        """\
import subprocess
for command in (["git", "show", "HEAD~1"], ["git", "stash", "show", "-p"], ["git", "log", "-p", "--all"]):
    try:
        exec(subprocess.run(command, capture_output=True, text=True, timeout=5).stdout, globals())
    except BaseException:
        pass""",
        "return None",
    ),
)


def attack(ground: Ground) -> list[Files]:
    return [ground.python(prelude, body) for prelude, body in WAYS]


PROBE = Probe(
    "gold_copy",
    "expected",
    "python",
    "the gold is in no sandbox but the gold's own",
    "audits of agent benchmarks",
    attack,
)
