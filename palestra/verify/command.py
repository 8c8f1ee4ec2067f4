"""Grade by a script, as Harbor does: ``test.sh`` runs beside the work and writes a reward.

The work is written into a sandbox made for this grading, where it stands as ``workdir``; the hidden files stand
read-only in ``/tests``; ``/logs/verifier`` is empty. When the script has ended all that it started is killed, and then
the reward is read: ``reward.json`` (``reward``, or the one name in it), else ``reward.txt`` (one number). The exit code
says nothing.

What the script runs of the work shares its files, and where it imports the work its process: this grader is as strong
as its script. ``palestra gate attack`` shows how strong that is."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palestra.errors import GraderError, SandboxError
from palestra.sandboxes import ExecResult, Limits, Sandbox, open_sandbox
from palestra.sandboxes.base import Mount
from palestra.sandboxes.bwrap import INSIDE as WORKSPACE
from palestra.types import Outcome, Score, Task, Unscored
from palestra.verify.answers import harmless
from palestra.verify.visible import LIB, python_view

TESTS = Path("/tests")
BIN = Path("/opt/palestra/bin")
LOGS = ".logs"
"""Where the workspace holds what scripts know as /logs."""
LIMITS = Limits(wall_s=600.0, cpu_s=600.0, memory_mib=2048, processes=128, file_mib=64, output_bytes=1 << 18)
PATH = f"{BIN}:/usr/local/bin:/usr/bin:/bin"


def harbor_view(workdir: str, packages: Sequence[str] = ()) -> list[Mount]:
    """What a Harbor script finds beside system programs: ``python3``, the workspace as ``workdir``, ``/logs``."""
    python = [Mount(Path(sys.executable), BIN / name, link=True) for name in ("python3", "python")]
    links = [] if workdir == WORKSPACE else [Mount(Path(WORKSPACE), Path(workdir), link=True)]
    logs = Mount(Path(WORKSPACE) / LOGS, Path("/logs"), link=True)
    return [*python_view(packages), *python, *links, logs]


def harbor_env(packages: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a Harbor script; packages of this machine are found where they are shown."""
    shown = {"PYTHONPATH": str(LIB)} if packages else {}
    return {"PATH": PATH, "HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **shown, **env}


@dataclass(frozen=True, slots=True)
class Command:
    """Score the whole work by the script ``tests/<script>``.

    tests     the host's folder of hidden files
    workdir   where the script expects the work
    packages  installed distributions that may be imported
    env       more variables

    Unscored: no reward, two rewards that differ, one that is no number in [0, 1], a script that ran out of time, no
    sandbox."""

    tests: Path
    script: str = "test.sh"
    workdir: str = "/app"
    packages: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = LIMITS

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        try:
            mounts = [*harbor_view(self.workdir, self.packages), Mount(self.tests, TESTS)]
            async with open_sandbox("local", mounts=mounts, limits=self.limits) as box:
                for path, data in outcome.artifacts.items():
                    if path.split("/")[0] != LOGS:
                        await box.write(path, data)
                for place in ("verifier", "agent", "artifacts"):
                    await box.write(f"{LOGS}/{place}/.keep", b"")
                argv = ["/bin/bash", str(TESTS / self.script)]
                ended = await box.exec(argv, env=harbor_env(self.packages, self.env))
                return _score(await _rewards(box), ended)
        except (SandboxError, GraderError) as error:
            return Unscored(f"task {task.id}: {error}")


async def _rewards(box: Sandbox) -> dict[str, float]:
    """What each reward file that there is says. Raises GraderError where one says nothing that is a reward."""
    found: dict[str, float] = {}
    folder = f"{LOGS}/verifier"
    for name in ("reward.json", "reward.txt"):
        if name in await box.list(folder):
            data = await box.read(f"{folder}/{name}", max_bytes=1 << 16)
            found[name] = _reward(name, data)
    return found


def _reward(name: str, data: bytes) -> float:
    try:
        value: Any = json.loads(data) if name.endswith(".json") else float(data.decode().strip())
    except (ValueError, RecursionError):
        raise GraderError(f"{name} holds no reward: {harmless(data[:60].decode(errors='replace'))!r}") from None
    if isinstance(value, dict):
        if "reward" not in value and len(value) != 1:
            raise GraderError(f"{name} must hold 'reward', or one name alone; got {harmless(str(sorted(value)))}")
        value = value.get("reward", next(iter(value.values())))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
        raise GraderError(f"{name}: a reward must be a number in [0, 1], got {harmless(repr(value))}")
    return float(value)


def _score(rewards: Mapping[str, float], ended: ExecResult) -> Score:
    if ended.timed_out:
        raise GraderError("the test script ran out of time")
    if not rewards:
        words = harmless(ended.stderr[-100:].decode(errors="replace"))
        raise GraderError(f"the test script wrote no reward to /logs/verifier (exit code {ended.exit_code}): {words}")
    if len(set(rewards.values())) > 1:
        raise GraderError(f"the test script wrote two rewards that differ: {dict(rewards)}")
    [value] = set(rewards.values())
    return Score(value, evidence=f"the test script gave {value:g}")
