"""Environments of kind "predict": the policy is shown a call of a function and must write the literal of its result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from random import Random

from palestra.envs.base import UNCERTIFIED, EnvSpec
from palestra.envs.bundle import Case, PredictFacts, read_cases
from palestra.errors import ConfigError, TaskError, nearest
from palestra.sandboxes.base import Sandbox
from palestra.types import Action, Message, Outcome, Score, Step, Task, Unscored
from palestra.verify.answer import EXPECTED, LiteralAnswer

STYLES = ("bare", "instructed")
INSTRUCTION = (
    "You are shown one call of a Python function. Answer with the value that it returns, written as a Python literal, "
    "and with nothing else."
)


class PredictEnvironment:
    """Tasks are the bundle's cases.

    ``tasks("train", seed)`` never ends: one seeded permutation of the split after another, so that every case comes
    once before any comes twice. Every other split is one seeded permutation, once. Nothing needs a sandbox: the
    answer is compared as data and never executed."""

    def __init__(
        self, path: Path, facts: PredictFacts, version: str, style: str, *, uncertified: str | None = None
    ) -> None:
        if style not in STYLES:
            raise ConfigError(f"style {style!r}: unknown, {nearest(style, STYLES)}")
        self.path, self.facts, self.style = path, facts, style
        self.spec = EnvSpec(
            id=facts.symbol,
            version=version,
            kind=facts.kind,
            splits=dict(facts.splits),
            facts={
                "package": facts.package,
                "package_version": facts.version,
                "licence": facts.licence,
                "style": style,
                **({UNCERTIFIED: uncertified} if uncertified else {}),
            },
        )
        self._grader = LiteralAnswer(facts.rel_tol)

    @cached_property
    def cases(self) -> dict[str, tuple[Case, ...]]:
        """The cases by split, in the order of the file."""
        every = read_cases(self.path)
        return {split: tuple(case for case in every if case.split == split) for split in self.spec.splits}

    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        if split not in self.spec.splits:
            raise TaskError(f"{self.spec.id}: no split {split!r}, {nearest(split, self.spec.splits)}")
        cases = self.cases[split]
        rounds = 0
        while cases and (rounds == 0 or split == "train"):
            order = list(range(len(cases)))
            Random(f"{self.spec.id}:{split}:{seed}:{rounds}").shuffle(order)
            for index in order:
                yield self.task(cases[index], seed)
            rounds += 1

    def task(self, case: Case, seed: int = 0) -> Task:
        """The task of one case. Its id is a hash of the environment's id and the call: the same whatever drew it."""
        identity = hashlib.sha256(f"{self.spec.id}\0{case.call}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        shown: tuple[Message, ...] = (Message("user", case.call),)
        if self.style == "instructed":
            shown = (Message("system", INSTRUCTION), *shown)
        return Task(identity, self.spec.id, case.split, seed, shown, {EXPECTED: case.expected})

    async def open(self, task: Task, sandbox: Sandbox | None = None) -> PredictSession:
        if task.env != self.spec.id:
            raise TaskError(f"task {task.id}: belongs to {task.env}, not to {self.spec.id}")
        return PredictSession(task.messages)

    def gold(self, task: Task) -> str:
        return str(task.facts[EXPECTED])

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        return await self._grader.grade(task, outcome, sandbox)


class PredictSession:
    """One question, one answer."""

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self._transcript = messages
        self._answered = False

    @property
    def observation(self) -> tuple[Message, ...]:
        return self._transcript

    async def act(self, action: Action) -> Step:
        if self._answered:
            raise TaskError("this session has been answered and takes no second answer; open another")
        self._answered = True
        self._transcript = (*self._transcript, action.message)
        return Step(observation=(), reward=0.0, terminated=True, truncated=False)

    async def outcome(self) -> Outcome:
        return Outcome(self._transcript)

    async def close(self) -> None:
        return None
