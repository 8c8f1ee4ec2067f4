"""Grade a short answer in words: a number, a choice, a set, or JSON. The reply is data and is never evaluated.

Each takes what was expected from ``task.facts["expected"]``. Right is 1, all else 0; a component tells whether the
answer could be read at all. An expected value that cannot be read is the grader's own failure: Unscored."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from palestra.sandboxes.base import Sandbox
from palestra.types import Outcome, Score, Task, Unscored
from palestra.verify.answer import EXPECTED
from palestra.verify.reply import Extract, last_message, whole

LONGEST = 400
"""Characters of a number: what is longer is no short answer, and would make exact arithmetic slow."""
LONGEST_JSON = 1 << 20
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
_DECIMAL = re.compile(rf"([+-]?)({_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{{1,3}}))?")
_FRACTION = re.compile(r"([+-]?)(?:([0-9]+)\s*/\s*([0-9]+)|\\[dt]?frac\{([0-9]+)\}\{([0-9]+)\})")


def number(text: str) -> Fraction | None:
    """The exact value of "-1,234.5", "1.5e3", "3/4" or "\\frac{3}{4}"; None for anything else, "1,5" and "nan" too."""
    text = text.strip().replace("\u2212", "-")
    if len(text) > LONGEST:
        return None
    if match := _DECIMAL.fullmatch(text):
        value = Fraction(match[2].replace(",", "")) * Fraction(10) ** int(match[3] or 0)
        return -value if match[1] == "-" else value
    if match := _FRACTION.fullmatch(text):
        above, below = int(match[2] or match[4]), int(match[3] or match[5])
        return None if below == 0 else Fraction(-above if match[1] == "-" else above, below)
    return None


def _verdict(is_right: bool, answer: Any) -> Score:
    if answer is None:
        return Score(0.0, {"readable": 0.0}, "the reply holds no answer of the kind that was asked for")
    return Score(float(is_right), {"readable": 1.0}, f"the answer is {'right' if is_right else 'wrong'}")


def _unreadable(task: Task, kind: str) -> Unscored:
    return Unscored(f"task {task.id}: its facts hold no {kind} under {EXPECTED!r}")


@dataclass(frozen=True, slots=True)
class NumberAnswer:
    """Right when |answer − expected| <= max(abs_tol, rel_tol·|expected|), in exact arithmetic.

    extract  where the answer stands (``reply``); what stands there must be a number and nothing more
    unit     a unit that may stand behind the number, as "km" or "%", or before it, as "$"; it is not converted
    Expected: a number, or text that ``number`` reads."""

    rel_tol: float = 0.0
    abs_tol: float = 0.0
    extract: Extract = whole
    unit: str = ""

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        expected = task.facts.get(EXPECTED)
        is_plain = isinstance(expected, (int, float, str)) and not isinstance(expected, bool)
        wanted = number(str(expected)) if is_plain else None
        if wanted is None:
            return _unreadable(task, "number")
        found = self.extract(last_message(outcome))
        got = None if found is None else number(self._without_unit(found))
        allowed = max(Fraction(self.abs_tol), Fraction(self.rel_tol) * abs(wanted))
        return _verdict(got is not None and abs(got - wanted) <= allowed, got)

    def _without_unit(self, text: str) -> str:
        return text.strip().removesuffix(self.unit).removeprefix(self.unit) if self.unit else text


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """Right when the answer names the expected one of ``choices``, as "B", "b", "(B)" or "B."; two are no answer."""

    choices: tuple[str, ...] = ("A", "B", "C", "D")
    extract: Extract = whole

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        expected = task.facts.get(EXPECTED)
        if expected not in self.choices:
            return _unreadable(task, f"one of {', '.join(self.choices)}")
        found = self.extract(last_message(outcome)) or ""
        bare = found.strip().removesuffix(".").removeprefix("(").removesuffix(")").strip().casefold()
        named = [choice for choice in self.choices if choice.casefold() == bare]
        return _verdict(named == [expected], named or None)


@dataclass(frozen=True, slots=True)
class SetAnswer:
    """Right when the parts of the answer between ``separator`` are the expected ones, in any order, none left out,
    added or said twice. Blanks around a part do not count; upper and lower case do, unless ``fold``. Expected: a list
    of texts."""

    separator: str = ","
    fold: bool = False
    extract: Extract = whole

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        expected = task.facts.get(EXPECTED)
        if not isinstance(expected, (list, tuple)) or not all(isinstance(part, str) for part in expected):
            return _unreadable(task, "list of texts")
        found = self.extract(last_message(outcome))
        got = None if found is None else sorted(map(self._plain, found.split(self.separator)))
        return _verdict(got == sorted(map(self._plain, expected)), got)

    def _plain(self, part: str) -> str:
        return part.strip().casefold() if self.fold else part.strip()


@dataclass(frozen=True, slots=True)
class JsonAnswer:
    """Right when the answer is JSON of the expected value: 1 and 1.0 are the same number, true is no number, the order
    of keys does not count, a key that stands twice is no answer. A fence of three backticks around it may stand.
    Expected: any JSON value."""

    extract: Extract = whole

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        if EXPECTED not in task.facts:
            return _unreadable(task, "value")
        found = self.extract(last_message(outcome))
        try:
            got = None if found is None else (_read(_unfenced(found)),)
        except (ValueError, RecursionError):
            got = None
        return _verdict(got is not None and _same(got[0], task.facts[EXPECTED]), got)


def _unfenced(text: str) -> str:
    fenced = re.fullmatch(r"```(?:json)?\s*\n([^`]*)```", text.strip())
    return fenced[1] if fenced else text


def _read(text: str) -> Any:
    def refused(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    if len(text) > LONGEST_JSON:
        raise ValueError("too long")
    return json.loads(text, parse_constant=refused, object_pairs_hook=unique)


def _same(got: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(got, dict) and got.keys() == wanted.keys() and all(_same(got[k], wanted[k]) for k in wanted)
    if isinstance(wanted, (list, tuple)):
        same_length = isinstance(got, list) and len(got) == len(wanted)
        return same_length and all(map(_same, got, wanted))
    if isinstance(wanted, bool) or isinstance(got, bool) or wanted is None or isinstance(wanted, str):
        return type(got) is type(wanted) and bool(got == wanted)
    return isinstance(got, (int, float)) and bool(got == wanted)
