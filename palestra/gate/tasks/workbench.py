"""A task bundle under examination: makes the gold's work, and grades any work, each in fresh sandboxes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from palestra.envs.bundle import content_hash
from palestra.envs.graders import Grader
from palestra.envs.task import opened
from palestra.envs.task_facts import TaskFacts
from palestra.gate.functions import text_files
from palestra.gate.surroundings import PLAIN, Surroundings
from palestra.sandboxes.base import Limits
from palestra.types import Message, Outcome, Score, Task, Unscored
from palestra.verify.answers import harmless
from palestra.verify.artifacts import collect
from palestra.verify.command import Command, harbor_env
from palestra.verify.forkers import Forkers
from palestra.verify.function import FunctionCalls
from palestra.verify.stdio import Stdio

Files = Mapping[str, bytes]
SOLVING = Limits(wall_s=300.0, cpu_s=300.0, memory_mib=2048, processes=256, output_bytes=1 << 18)


@dataclass(frozen=True, slots=True)
class Solved:
    """What ``solution/solve.sh`` left: the work, why it may not be graded (""), seconds, MiB."""

    files: Files
    fault: str
    seconds: float
    memory_mib: float


@dataclass
class Workbench:
    """``async with Workbench(facts) as bench``: the interpreters that graders fork from live as long as it does."""

    facts: TaskFacts
    gradings: int = 0
    _forkers: dict[Surroundings, Forkers | None] = field(default_factory=dict)
    _graders: dict[Surroundings, Grader] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sha256 = content_hash(self.facts.path)
        self.task = Task(
            "gate", self.facts.id, self.facts.metadata.split, 0, (Message("user", self.facts.instruction),)
        )

    @property
    def start(self) -> Files:
        """The work as the agent finds it: what is graded when nothing is done."""
        names = self.facts.spec.artifacts
        return {name: file.read_bytes() for name, file in self.facts.image.files.items() if _is_within(name, names)}

    def sources(self) -> list[tuple[Path, str]]:
        """The text files of ``solution/``."""
        return list(text_files(self.facts.path / "solution"))

    async def solve(self, around: Surroundings = PLAIN) -> Solved:
        """Run the gold in a fresh workspace. Raises SandboxError."""
        started = time.perf_counter()
        box = await opened(self.facts, solution=self.facts.path / "solution")
        try:
            env = harbor_env(self.facts.image.packages, {**self.facts.image.env, **around.env()})
            ran = await box.exec(["/bin/bash", "/solution/solve.sh"], env=env, limits=SOLVING)
            found = await collect(box, self.facts.spec.artifacts or (".",))
        finally:
            await box.close()
        fault = ""
        if ran.timed_out:
            fault = f"solution/solve.sh did not end within {SOLVING.wall_s:g} s"
        elif ran.exit_code:
            words = harmless(ran.stderr[-200:].decode(errors="replace"))
            fault = f"solution/solve.sh exited with {ran.exit_code}: {words}"
        elif found.left_out:
            path, why = next(iter(found.left_out.items()))
            fault = f"solution/solve.sh leaves {path}, which {why}: a grader is not given it"
        return Solved(found.files, fault, time.perf_counter() - started, ran.usage.max_rss_mib)

    async def grade(self, files: Files, around: Surroundings = PLAIN) -> Score | Unscored:
        """The real grader's verdict on a work."""
        self.gradings += 1
        said = tuple(Message("assistant", text.decode(errors="replace")) for text in files.values())
        return await self.grader(around).grade(self.task, Outcome((*self.task.messages, *said[:1]), files))

    def grader(self, around: Surroundings = PLAIN) -> Grader:
        """Raises BundleError where a hidden file is not as it must be."""
        if around not in self._graders:
            env = around.env()
            if around not in self._forkers:
                self._forkers[around] = self.facts.spec.forks(self.facts.image.packages, env)
            self._graders[around] = self.facts.spec.grader(self.facts.place(env, self._forkers[around]))
        return self._graders[around]

    def hasten(self, call_s: float, total_s: float) -> None:
        """From now on a grading in plain surroundings gets ``total_s`` seconds, and one call ``call_s``: a wrong work
        need not be waited for. Never more than the bundle gives."""
        match self.grader():
            case FunctionCalls() as calls:
                shorter = replace(calls, call_s=min(calls.call_s, call_s), total_s=min(calls.total_s, total_s))
                self._graders[PLAIN] = shorter
            case Stdio() as stdio:
                self._graders[PLAIN] = replace(stdio, limits=_shorter(stdio.limits, total_s))
            case Command() as command:
                self._graders[PLAIN] = replace(command, limits=_shorter(command.limits, total_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for forkers in self._forkers.values():
            if forkers is not None:
                await forkers.__aexit__()


def _shorter(limits: Limits, seconds: float) -> Limits:
    return replace(limits, wall_s=min(limits.wall_s, seconds), cpu_s=min(limits.cpu_s or seconds, seconds))


def _is_within(name: str, names: tuple[str, ...]) -> bool:
    return any(wanted == "." or name == wanted or name.startswith(f"{wanted}/") for wanted in names)


def passes(score: Score | Unscored) -> bool:
    return isinstance(score, Score) and score.value == 1.0


def told(score: Score | Unscored) -> str:
    """A verdict in words."""
    if isinstance(score, Unscored):
        return f"unscored: {score.reason}"
    return f"{score.value:g}" + (f": {score.evidence}" if score.evidence else "")
