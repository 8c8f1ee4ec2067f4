"""What the checks look at: one bundle, read once, and the evidence that the checks hand in."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from palestra.envs.bundle import Case, PredictFacts, content_hash, read_facts
from palestra.envs.predict import PredictEnvironment
from palestra.errors import BundleError
from palestra.gate.functions import body_of, definitions, text_files
from palestra.gate.leaks import Hidden
from palestra.types import Task
from palestra.verify.calls import Target
from palestra.verify.inside.literals import read, read_first, show


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check: ``evidence`` in words, ``facts`` in numbers; where it did not pass, ``evidence`` says
    what to change."""

    name: str
    passed: bool
    evidence: str
    seconds: float = field(default=0.0, compare=False)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        return {"name": self.name, "passed": self.passed, "evidence": self.evidence, "seconds": round(self.seconds, 4)}


@dataclass
class Subject:
    """A bundle under examination. Raises BundleError where it cannot be read as one."""

    path: Path

    def __post_init__(self) -> None:
        facts = read_facts(self.path)
        if not isinstance(facts, PredictFacts):
            raise BundleError(f"{self.path}: is of kind {facts.kind!r}, these checks are for kind 'predict'")
        self.facts = facts
        self.sha256 = content_hash(self.path)
        self.environment = PredictEnvironment(self.path, self.facts, self.sha256, "bare")

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        return tuple(case for cases in self.environment.cases.values() for case in cases)

    @cached_property
    def outcomes(self) -> list[Any]:
        """The expected value of each case. Raises NotPlain where a literal cannot be read."""
        return [read(case.expected) for case in self.cases]

    @cached_property
    def arguments(self) -> list[str]:
        return [self.facts.arguments(case.call) for case in self.cases]

    def first_arguments(self) -> list[str]:
        """The canonical literal of each case's first argument; "" for a call without arguments."""
        return [show(read_first(text)) if text else "" for text in self.arguments]

    def draw(self, count: int, seed: int) -> list[Task]:
        """``count`` distinct tasks (fewer where there are fewer), from every split in proportion, as training draws."""
        total = len(self.cases)
        tasks: list[Task] = []
        for split, size in self.facts.splits.items():
            wanted = min(size, -(-count * size // total)) if total else 0
            tasks += islice(self.environment.tasks(split, seed), wanted)
        return tasks

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The definitions of the function in the bundle's own source; none where it is made otherwise."""
        sources = (text for _, text in text_files(self.path / "solution" / "source", ".py"))
        return list(definitions(sources, self.facts.symbol.rpartition(".")[2]))

    @cached_property
    def hidden(self) -> Hidden:
        """What the agent must not see: what the function does, the files of solution/ and tests/, its package."""
        files = {
            file.relative_to(self.path).as_posix(): file.read_bytes()
            for folder in ("solution", "tests")
            for file in sorted((self.path / folder).rglob("*"))
            if file.is_file()
        }
        gold = {f"{self.facts.symbol} (line {found.lineno})": body_of(found) for found in self.functions}
        return Hidden(gold, files=files, packages=[self.facts.package])

    @property
    def target(self) -> Target:
        return Target(self.path / "solution" / "source", self.facts.module, self.facts.path)
