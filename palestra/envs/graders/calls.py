"""Hidden calls of a Python function: ``tests/cases.jsonl`` holds one {"args": …, "expected": …} a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from palestra.config import Config
from palestra.envs.graders.base import Grader, Place
from palestra.envs.lines import read_objects, texts
from palestra.errors import BundleError, GraderError
from palestra.verify import expect
from palestra.verify.compare import Rules
from palestra.verify.forkers import Forkers
from palestra.verify.function import Call, FunctionCalls

CASES = "cases.jsonl"


class RulesSettings(Config):
    """As ``verify.compare.Rules``."""

    rel_tol: float = 0.0
    abs_tol: float = 0.0
    ulp: int = 0
    nan_equal: bool = True
    signed_zero: bool = False
    ordered: bool = True
    strict_types: bool = True
    bool_is_int: bool = False


class CallsSpec(Config):
    """As ``verify.function.FunctionCalls``. ``packages``: installed distributions that graded code may import."""

    kind: Literal["calls"] = "calls"
    symbol: str = Field(min_length=1)
    artifact: str = "solution.py"
    module: str | None = None
    root: str = ""
    credit: Literal["fraction", "all"] = "all"
    rules: RulesSettings = RulesSettings()
    classes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    packages: tuple[str, ...] = ()
    iterate: int = Field(default=1000, ge=1)
    call_s: float = Field(default=1.0, gt=0)
    total_s: float = Field(default=20.0, gt=0)

    @property
    def artifacts(self) -> tuple[str, ...]:
        return (self.artifact,) if self.module is None else (self.root or ".",)

    def grader(self, place: Place) -> Grader:
        try:
            rules = Rules(**self.rules.model_dump())
        except GraderError as error:
            raise BundleError(f"{place.tests.parent / 'task.toml'}: rules: {error}") from None
        return FunctionCalls(
            self.symbol,
            self.artifact,
            self.module,
            self.root,
            calls=read_calls(place.tests / CASES),
            rules=rules,
            credit=self.credit,
            classes=tuple(self.classes.items()),
            iterate=self.iterate,
            call_s=self.call_s,
            total_s=self.total_s,
            forkers=place.forkers,
        )

    def hidden(self, tests: Path) -> Sequence[str]:
        return [text for call in read_calls(tests / CASES) for text in (call.expected, call.args)]

    def forks(self, packages: Sequence[str], env: Mapping[str, str]) -> Forkers | None:
        return Forkers(2, packages=tuple(dict.fromkeys((*self.packages, *packages))), env=env)


def read_calls(file: Path) -> tuple[Call, ...]:
    """Every hidden call. Raises BundleError: none at all, a line that is no call, an expectation that is no value."""
    calls: list[Call] = []
    for place, found in read_objects(file):
        args, expected = texts(place, found, "args", "expected")
        try:
            expect.read(expected)
        except expect.BadExpectation as error:
            raise BundleError(f"{place}: 'expected' is no value: {error}") from None
        calls.append(Call(args, expected))
    if not calls:
        raise BundleError(f"{file}: holds no case; a grader without cases passes everything")
    return tuple(calls)
