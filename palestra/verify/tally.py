"""What a grading of many cases says in words, without a word of what was expected."""

from __future__ import annotations

from collections.abc import Mapping

MOST_NAMED = 8


def evidence(what: str, right: int, count: int, wrong: Mapping[str, list[int]]) -> str:
    """``wrong``: indices of cases by what was wrong with them."""
    told = [f"{right} of {count} {what} are right"]
    for words, cases in wrong.items():
        named = ", ".join(map(str, cases[:MOST_NAMED])) + (" …" if len(cases) > MOST_NAMED else "")
        told.append(f"{words}: {named}")
    return "; ".join(told)
