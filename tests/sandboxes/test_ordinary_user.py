"""The local back end without any privilege on the host: no cgroup is ours, the watchdog and rlimits must hold."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
REPOSITORY = Path(__file__).parents[2]
CASES = """
import asyncio, json, sys
from palestra.sandboxes import conformance
report = asyncio.run(conformance.run("local", only=sys.argv[1:]))
print(json.dumps([report.protections, [[case.name, case.status, case.reason] for case in report.verdicts]]))
"""
ATTACKS = """
import asyncio, json, sys
from palestra.sandboxes import Limits, open_sandbox, python_mounts
from palestra.sandboxes.zygote import Zygote
BOMB = "import os\\nwhile True:\\n  try: os.fork()\\n  except OSError: pass"
LEAVE = '''
import os
for d in ('/tmp', '/workspace', '/dev/shm'):
  os.makedirs(d + '/a/b'); os.chmod(d + '/a', 0); os.chmod(d, 0)
'''
async def main():
    async with open_sandbox("local", mounts=python_mounts()) as box:
        bomb = await box.exec([sys.executable, "-I", "-c", BOMB], limits=Limits(wall_s=1, processes=50))
    async with Zygote(writable=True) as zygote:
        await zygote.call(LEAVE)
        seen = await zygote.call("import os; reply(repr([os.listdir(d) for d in ('/tmp', '/workspace')]).encode())")
    print(json.dumps([bomb.limits_hit, seen.frames[0].decode()]))
asyncio.run(main())
"""


def as_nobody(program: str, *arguments: str) -> Any:
    """What a program prints as JSON when it is run without privilege, by an interpreter that nobody may use."""
    if os.getuid() != 0:
        pytest.skip("only root can run a program as another user; every other test here runs without privilege")
    for python in filter(None, (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin"))):
        if _run(python, "import sys; assert sys.version_info >= (3, 11); import palestra.sandboxes").returncode == 0:
            ran = _run(python, program, *arguments)
            assert ran.returncode == 0, ran.stderr
            return json.loads(ran.stdout)
    pytest.skip("no Python 3.11 is here that user 65534 may run, or the repository cannot be read by that user")


def _run(python: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv: Sequence[str] = [python, "-c", program, *arguments]
    options: Any = {"user": NOBODY, "group": NOBODY, "extra_groups": (), "cwd": "/", "timeout": 60}
    env = {"PATH": os.defpath, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, **options)
    except PermissionError:
        return subprocess.CompletedProcess(argv, 126)


def test_the_conformance_suite_holds_where_isolation_and_limits_are_another_matter() -> None:
    names = [
        "memory-of-all-is-bounded",
        "a-fork-bomb-is-bounded",
        "nothing-outlives-a-command",
        "namespaces-are-denied",
    ]
    names += ["the-kernel-cannot-be-tuned", "there-are-no-capabilities", "a-fork-does-not-touch-its-parent"]
    protections, verdicts = as_nobody(CASES, *names)
    assert [verdict for verdict in verdicts if verdict[1] != "passed"] == [] and len(verdicts) == len(names)
    assert "watchdog" in protections and "cgroup-limits" not in protections


def test_limits_are_named_and_leftovers_removed_without_privilege() -> None:
    limits_hit, seen = as_nobody(ATTACKS)
    assert {"wall_s", "processes"} <= set(limits_hit) and seen == "[[], []]"
