"""What an unordered comparison needs: a text per value, and a pairing of two lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from palestra.verify.values import Array, Kin, Produced, Raised, Record

Plain = Callable[[Any], Any]


def key_text(value: Any, plain: Plain = lambda value: value, *, ordered: bool = True) -> str:
    """A text that two values share exactly when they are the same by type and value; NaN is NaN, −0.0 is 0.0.

    plain    replaces a value, at any depth, before its type is looked at
    ordered  the order of lists and tuples counts; that of sets and dicts never does"""
    value = plain(value)
    kind = type(value)

    def all_of(items: Any) -> list[str]:
        return [key_text(item, plain, ordered=ordered) for item in items]

    if kind in (list, tuple):
        texts = all_of(value)
        return f"{kind.__name__}({','.join(texts if ordered else sorted(texts))})"
    if kind in (set, frozenset):
        return f"{kind.__name__}({','.join(sorted(all_of(value)))})"
    if kind is dict:
        return f"dict({','.join(sorted(':'.join(all_of(pair)) for pair in value.items()))})"
    if kind in (Record, Kin, Produced, Array, Raised):
        return f"{kind.__name__}({','.join(all_of(getattr(value, field.name) for field in fields(value)))})"
    if kind is int:
        return f"int {value:x}"
    if kind is complex:
        return f"complex {value.real + 0.0!r} {value.imag + 0.0!r}"
    return f"{kind.__name__} {(value + 0.0 if kind is float else value)!r}"


def all_floats(items: Sequence[Any]) -> bool:
    return all(type(item) is float for item in items)


def in_order(items: Sequence[float]) -> list[float]:
    """Floats from small to large, NaN last."""
    return sorted(items, key=lambda item: (item != item, item if item == item else 0))


def can_be_paired(left: Sequence[Any], right: Sequence[Any], same: Callable[[Any, Any], bool]) -> bool:
    """Whether two lists of one length can be paired so that each pair is the same (Kuhn's augmenting paths)."""
    choices = [[place for place, b in enumerate(right) if same(a, b)] for a in left]
    taken: dict[int, int] = {}

    def augment(item: int, tried: set[int]) -> bool:
        for place in choices[item]:
            if place not in tried:
                tried.add(place)
                if place not in taken or augment(taken[place], tried):
                    taken[place] = item
                    return True
        return False

    return all(augment(item, set()) for item in range(len(left)))
