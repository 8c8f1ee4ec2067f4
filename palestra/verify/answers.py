"""What ``inside.driver`` said about calls, read strictly: a frame too many or out of turn is not the driver's."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from palestra.verify.values import BadWire, Raised, decode_plain

MOST_WORDS = 120


@dataclass(frozen=True, slots=True)
class Failed:
    """A call without a result, and why."""

    words: str


@dataclass(slots=True)
class Answers:
    """results   one per call that was answered: the value, Raised, or Failed
    refused   why nothing could be called
    tampered  what was said that the driver never says
    """

    results: list[Any] = field(default_factory=list)
    is_ready: bool = False
    ended: bool = False
    refused: str | None = None
    tampered: str | None = None


def harmless(text: str) -> str:
    """Words of the graded code, fit to be quoted: printable ASCII, bounded."""
    return re.sub(r"[^ -~]", "?", text)[:MOST_WORDS]


def parse(frames: Sequence[bytes], first: int, count: int) -> Answers:
    """The answers to calls ``first`` up to ``count``, as far as they came."""
    answers = Answers()
    for frame in frames:
        try:
            _take(answers, json.loads(frame), first, count)
        except (BadWire, ValueError, TypeError, RecursionError) as error:
            answers.tampered = f"an answer that the driver never gives: {harmless(str(error))}"
            break
    return answers


def _take(answers: Answers, said: Any, first: int, count: int) -> None:
    if type(said) is not list or not said:
        raise BadWire("no list")
    kind, rest = said[0], said[1:]
    if answers.ended or answers.refused:
        raise BadWire("words after the end")
    if not answers.is_ready:
        if kind == "refused":
            answers.refused = harmless(_text(*rest))
        elif said == ["ready"]:
            answers.is_ready = True
        else:
            raise BadWire("words before the beginning")
    elif said == ["end"]:
        if first + len(answers.results) != count:
            raise BadWire("an end before the last call")
        answers.ended = True
    else:
        index, *about = rest
        if index != first + len(answers.results) or index >= count:
            raise BadWire("an answer out of turn")
        answers.results.append(_result(kind, about))


def _result(kind: str, about: list[Any]) -> Any:
    if kind == "late":
        return Failed("ran out of time")
    if kind == "value":
        return decode_plain(*about)
    if kind == "unsuitable":
        return Failed(f"gave no plain data: {harmless(_text(*about))}")
    if kind == "raised":
        return Raised(tuple(_text(name) for name in about[0]))
    raise BadWire("an unknown kind of answer")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadWire("something else where words should stand")
    return value
