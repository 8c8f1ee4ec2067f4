"""Task bundles for tests, made in a folder: a sound one, and changes of it."""

from __future__ import annotations

import json
from pathlib import Path

TOML = """schema_version = "1.4"
[task]
name = "tests/{name}"
[metadata.palestra]
schema = 1
kind = "implement"
[metadata.palestra.grader]
{grader}
[environment]
workdir = "/app"
"""
CALLS = 'kind = "calls"\nsymbol = "f"\n'
GOLD = """def f(a, b=2):
    if not a:
        raise ValueError("nothing")
    total = 0
    for item in a:
        if item > b:
            total += item
    return total
"""
CASES = (
    ("[1, 2, 3, 4]", "7"),
    ("[1, 2, 3, 4], 3", "4"),
    ("[2, 2]", "0"),
    ("[5], b=5", "0"),
    ("[6, 7], b=5", "13"),
    ("[]", "raises(ValueError)"),
)


def write(path: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(0o755 if name.endswith(".sh") else 0o644)
    return path


def task_bundle(path, *, gold=GOLD, cases=CASES, grader=CALLS, more=None, instruction=None) -> Path:
    """A bundle whose gold writes ``gold`` to solution.py, graded by ``cases``; ``more`` files replace these."""
    told = instruction or "Write a function `f(a, b=2)` in `/app/solution.py` that sums the items of a above b.\n"
    files: dict[str, str | bytes] = {
        "task.toml": TOML.format(name=path.name, grader=grader),
        "instruction.md": told,
        "environment/Dockerfile": "FROM python:3-slim\nWORKDIR /app\n",
        "solution/solve.sh": "#!/bin/sh\ncp /solution/solution.py /app/solution.py\n",
        "solution/solution.py": gold,
        "tests/test.sh": "#!/bin/sh\nexit 1\n",
        "tests/cases.jsonl": "".join(json.dumps({"args": a, "expected": e}) + "\n" for a, e in cases),
    }
    return write(path, {**files, **(more or {})})
