"""A program by input and output: ``tests/cases.jsonl`` holds one {"stdin": …, "stdout": …, "args": […]} a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from palestra.config import Config
from palestra.envs.graders.base import Grader, Place
from palestra.envs.graders.calls import CASES
from palestra.envs.lines import read_objects, read_text, texts
from palestra.errors import BundleError
from palestra.sandboxes.base import Limits
from palestra.verify.forkers import Forkers
from palestra.verify.languages import language
from palestra.verify.outputs import Checker, Comparison, Exact, Floats, Tokens
from palestra.verify.stdio import Case, Stdio


class StdioSpec(Config):
    """As ``verify.stdio.Stdio``.

    compare  exact, tokens, floats (``rel_tol``, ``abs_tol``), or checker: the Python program ``tests/<checker>``
    case_s   seconds of one case
    """

    kind: Literal["stdio"] = "stdio"
    language: str = "python"
    artifact: str | None = None
    compare: Literal["exact", "tokens", "floats", "checker"] = "exact"
    checker: str = "checker.py"
    rel_tol: float = Field(default=1e-6, ge=0)
    abs_tol: float = Field(default=1e-9, ge=0)
    credit: Literal["fraction", "all"] = "all"
    case_s: float = Field(default=5.0, gt=0)
    total_s: float = Field(default=120.0, gt=0)

    @property
    def artifacts(self) -> tuple[str, ...]:
        return (self.artifact or language(self.language).source,)

    def grader(self, place: Place) -> Grader:
        return Stdio(
            self.language,
            self.artifact,
            cases=read_cases(place.tests / CASES),
            compare=self._comparison(place.tests),
            env=place.env,
            credit=self.credit,
            limits=Limits(
                wall_s=self.case_s, cpu_s=self.case_s, memory_mib=1024, processes=64, file_mib=64, output_bytes=1 << 20
            ),
            total_s=self.total_s,
        )

    def _comparison(self, tests: Path) -> Comparison:
        if self.compare == "checker":
            return Checker(read_text(tests / self.checker))
        return {"exact": Exact(), "tokens": Tokens(), "floats": Floats(self.rel_tol, self.abs_tol)}[self.compare]

    def hidden(self, tests: Path) -> Sequence[str]:
        return [text.strip() for case in read_cases(tests / CASES) for text in (case.stdout, case.stdin)]

    def forks(self, packages: Sequence[str], env: Mapping[str, str]) -> Forkers | None:
        return None


def read_cases(file: Path) -> tuple[Case, ...]:
    """Every hidden case. Raises BundleError: none at all, or a line that is none."""
    cases: list[Case] = []
    for place, found in read_objects(file):
        stdin, stdout = texts(place, found, "stdin", "stdout")
        args = found.get("args", [])
        if not isinstance(args, list) or not all(isinstance(arg, str) and "\0" not in arg for arg in args):
            raise BundleError(f"{place}: 'args' must be a list of texts without NUL")
        cases.append(Case(stdin, stdout, tuple(args)))
    if not cases:
        raise BundleError(f"{file}: holds no case; a grader without cases passes everything")
    return tuple(cases)
