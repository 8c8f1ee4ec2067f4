"""A short answer, in a file or in the last message: what is expected stands in ``tests/expected.json``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from palestra.config import Config
from palestra.envs.graders.base import Grader, Place
from palestra.envs.lines import read_json
from palestra.errors import BundleError
from palestra.sandboxes.base import Sandbox
from palestra.types import Message, Outcome, Score, Task, Unscored
from palestra.verify.answer import EXPECTED, LiteralAnswer
from palestra.verify.forkers import Forkers
from palestra.verify.reply import After, Extract, Tagged, boxed, whole
from palestra.verify.short import ChoiceAnswer, JsonAnswer, NumberAnswer, SetAnswer

FILE = "expected.json"


@dataclass(frozen=True, slots=True)
class Given:
    """Grade what stands in the artifact (None: the last message) by ``grader``, against ``expected``."""

    inner: Grader
    expected: Any
    artifact: str | None

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        if self.artifact is not None:
            said = outcome.artifacts.get(self.artifact, b"").decode(errors="replace")
            outcome = replace(outcome, transcript=(Message("assistant", said),))
        return await self.inner.grade(replace(task, facts={EXPECTED: self.expected}), outcome, sandbox)


class AnswerSpec(Config):
    """artifact  the file that holds the answer; "" for the last message
    format    number, choice, set, json, or literal (of Python)
    extract   where in the text it stands: whole, boxed, "tag:NAME" or "after:MARK"
    """

    kind: Literal["answer"] = "answer"
    artifact: str = "answer.txt"
    format: Literal["number", "choice", "set", "json", "literal"] = "number"
    extract: str = Field(default="whole", pattern=r"^(whole|boxed|tag:[A-Za-z_]\w*|after:.+)$")
    rel_tol: float = Field(default=0.0, ge=0)
    abs_tol: float = Field(default=0.0, ge=0)
    unit: str = ""
    choices: tuple[str, ...] = ("A", "B", "C", "D")
    separator: str = Field(default=",", min_length=1)
    fold: bool = False

    @property
    def artifacts(self) -> tuple[str, ...]:
        return (self.artifact,) if self.artifact else ()

    def grader(self, place: Place) -> Grader:
        expected = read_json(place.tests / FILE)
        kinds: dict[str, tuple[Callable[[], Grader], type | tuple[type, ...]]] = {
            "number": (lambda: NumberAnswer(self.rel_tol, self.abs_tol, self._extract, self.unit), (int, float, str)),
            "choice": (lambda: ChoiceAnswer(self.choices, self._extract), str),
            "set": (lambda: SetAnswer(self.separator, self.fold, self._extract), list),
            "json": (lambda: JsonAnswer(self._extract), object),
            "literal": (lambda: LiteralAnswer(self.rel_tol), str),
        }
        make, kind = kinds[self.format]
        if not isinstance(expected, kind) or (self.format == "choice" and expected not in self.choices):
            raise BundleError(f"{place.tests / FILE}: {expected!r:.60} is no expected value of format {self.format}")
        return Given(make(), expected, self.artifact or None)

    @property
    def _extract(self) -> Extract:
        kind, _, rest = self.extract.partition(":")
        return {"whole": whole, "boxed": boxed}.get(kind) or (Tagged(rest) if kind == "tag" else After(rest))

    def hidden(self, tests: Path) -> Sequence[str]:
        expected = read_json(tests / FILE)
        return [expected if isinstance(expected, str) else json.dumps(expected)]

    def forks(self, packages: Sequence[str], env: Mapping[str, str]) -> Forkers | None:
        return None
