"""Graders made of graders.

A part that is unscored makes the whole unscored, with the part's name before its reason: what is unknown is never 0. A
part is not asked only where an earlier one decided. The whole's components are each part's value under its name, and
the part's own under ``name.component``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from palestra.errors import GraderError
from palestra.sandboxes.base import Sandbox
from palestra.types import Outcome, Score, Task, Unscored


class Grader(Protocol):
    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A grader of a whole. ``weight`` counts where the whole is a sum."""

    name: str
    grader: Grader
    weight: float = 1.0


@dataclass
class _Told:
    """What the parts said so far."""

    components: dict[str, float] = field(default_factory=dict)
    evidence: list[str] = field(default_factory=list)

    def score(self, value: float) -> Score:
        return Score(value, self.components, "; ".join(self.evidence))


async def _ask(part: Part, told: _Told, task: Task, outcome: Outcome, sandbox: Sandbox | None) -> float | Unscored:
    score = await part.grader.grade(task, outcome, sandbox)
    if isinstance(score, Unscored):
        return Unscored(f"{part.name}: {score.reason}")
    told.components[part.name] = score.value
    told.components.update({f"{part.name}.{name}": value for name, value in score.components.items()})
    if score.evidence:
        told.evidence.append(f"{part.name}: {score.evidence}")
    return score.value


@dataclass(frozen=True, slots=True)
class AllOf:
    """The least value of the parts, which are all asked."""

    parts: tuple[Part, ...]

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        told, least = _Told(), 1.0
        for part in self.parts:
            value = await _ask(part, told, task, outcome, sandbox)
            if isinstance(value, Unscored):
                return value
            least = min(least, value)
        return told.score(least)


@dataclass(frozen=True, slots=True)
class Weighted:
    """Σ weight · value / Σ weight, over parts that are all asked."""

    parts: tuple[Part, ...]

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        told, total = _Told(), 0.0
        for part in self.parts:
            value = await _ask(part, told, task, outcome, sandbox)
            if isinstance(value, Unscored):
                return value
            total += part.weight * value
        return told.score(min(1.0, total / sum(part.weight for part in self.parts)))


@dataclass(frozen=True, slots=True)
class GatedBy:
    """``body``'s value where ``gate`` gives at least ``least``; otherwise 0, and ``body`` is not asked."""

    gate: Part
    body: Part
    least: float = 1.0

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        told = _Told()
        passed = await _ask(self.gate, told, task, outcome, sandbox)
        if isinstance(passed, Unscored):
            return passed
        if passed < self.least:
            told.evidence.append(f"{self.body.name}: not asked, as {self.gate.name} gave less than {self.least:g}")
            return told.score(0.0)
        value = await _ask(self.body, told, task, outcome, sandbox)
        return value if isinstance(value, Unscored) else told.score(value)


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """1 where every part gives 1; otherwise the value of the first that does not, and those after it are not asked."""

    parts: tuple[Part, ...]

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        told = _Told()
        for part in self.parts:
            value = await _ask(part, told, task, outcome, sandbox)
            if isinstance(value, Unscored):
                return value
            if value < 1.0:
                return told.score(value)
        return told.score(1.0)


@dataclass(frozen=True, slots=True)
class Staged:
    """Stages that build on one another: Σ weight · value / Σ weight, where a stage counts only when all before it gave
    1; the first that does not counts with its value, and those after it are not asked."""

    parts: tuple[Part, ...]

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        told, reached = _Told(), 0.0
        for part in self.parts:
            value = await _ask(part, told, task, outcome, sandbox)
            if isinstance(value, Unscored):
                return value
            reached += part.weight * value
            if value < 1.0:
                break
        return told.score(min(1.0, reached / sum(part.weight for part in self.parts)))


def all_of(**graders: Grader) -> AllOf:
    """The least value: ``all_of(tests=…, style=…)``."""
    return AllOf(_parts(graders))


def weighted(weights: Mapping[str, float], **graders: Grader) -> Weighted:
    """The weighted mean: ``weighted({"tests": 3, "style": 1}, tests=…, style=…)``."""
    return Weighted(_parts(graders, weights))


def gated_by(gate: Grader, body: Grader, *, least: float = 1.0) -> GatedBy:
    """``body`` where ``gate`` gives at least ``least``, else 0."""
    if not 0.0 < least <= 1.0:
        raise GraderError(f"a gate's least value must be in (0, 1], got {least!r}")
    return GatedBy(Part("gate", gate), Part("body", body), least)


def first_failure(**graders: Grader) -> FirstFailure:
    """The first value below 1, in the order given."""
    return FirstFailure(_parts(graders))


def staged(weights: Mapping[str, float] | None = None, **graders: Grader) -> Staged:
    """Credit for each stage reached, in the order given; every weight 1 unless told."""
    return Staged(_parts(graders, weights))


def _parts(graders: Mapping[str, Grader], weights: Mapping[str, float] | None = None) -> tuple[Part, ...]:
    if not graders:
        raise GraderError("a whole needs at least one part")
    weights = dict.fromkeys(graders, 1.0) if weights is None else weights
    if set(weights) != set(graders):
        odd = min(set(weights) ^ set(graders))
        raise GraderError(f"weights and parts must name the same: {odd!r} is only in one of them")
    for name, weight in weights.items():
        if not 0.0 < weight < float("inf"):
            raise GraderError(f"the weight of part {name!r} must be a number above 0, got {weight!r}")
    return tuple(Part(name, grader, weights[name]) for name, grader in graders.items())
