"""Values on the grader's side: rebuilt from what crossed, or read from the text of an expectation; never executed.

Plain data is itself: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset. All else is one of
the classes below, which hold plain data and have no methods that graded code could have written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from palestra.verify.inside.wire import MAX_DEPTH


class BadWire(ValueError):
    """Text that our own writer does not produce."""


@dataclass(frozen=True, slots=True)
class Array:
    """A numpy array: ``items`` are its elements in C order."""

    dtype: str
    shape: tuple[int, ...]
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """An object, by the declared fields of its class."""

    type: str
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Kin:
    """A value of a known relative of a plain type, such as OrderedDict, deque, range or numpy.float64."""

    type: str
    value: Any


@dataclass(frozen=True, slots=True)
class Produced:
    """What an iterator gave; ``ended`` is False where only its first items are known, or asked about."""

    items: tuple[Any, ...]
    ended: bool = True


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception: the names of its class and of that class's bases, the most special first."""

    types: tuple[str, ...]


def decode(text: str) -> Any:
    """The value that ``inside.wire`` wrote. Raises BadWire on any other text."""
    try:
        return decode_plain(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise BadWire(f"not a value: {error}") from None


def decode_plain(data: Any) -> Any:
    """The value in parsed JSON. Raises BadWire."""
    try:
        return _value(data, 0)
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        raise BadWire(f"not a value: {error}") from None


def _value(data: Any, depth: int) -> Any:
    if not isinstance(data, (list, dict)):
        return data
    if isinstance(data, dict) or not data or depth > 2 * MAX_DEPTH:
        raise BadWire("no mark, or too deep")
    mark, rest = data[0], data[1:]
    if not isinstance(mark, str) or mark not in _READERS:
        raise BadWire("an unknown mark")
    return _READERS[mark](rest, depth + 1)


def _all(rest: list[Any], depth: int) -> Iterator[Any]:
    return (_value(item, depth) for item in rest)


def _pairs(rest: list[Any], depth: int) -> Iterator[tuple[Any, Any]]:
    items = list(_all(rest, depth))
    return zip(items[::2], items[1::2], strict=True)


def _array(rest: list[Any], depth: int) -> Array:
    shape = tuple(_value(rest[1], depth))
    items = tuple(_all(rest[2:], depth))
    if not all(type(size) is int and size >= 0 for size in shape) or math.prod(shape) != len(items):
        raise BadWire("an array whose items do not fill its shape")
    return Array(_text(rest[0]), shape, items)


def _record(rest: list[Any], depth: int) -> Record:
    return Record(_text(rest[0]), tuple((_text(name), value) for name, value in _pairs(rest[1:], depth)))


def _kin(rest: list[Any], depth: int) -> Kin:
    name, inner = rest
    return Kin(_text(name), _value(inner, depth))


def _produced(rest: list[Any], depth: int) -> Produced:
    if not isinstance(rest[0], bool):
        raise BadWire("an iterator that neither ended nor was cut off")
    return Produced(tuple(_all(rest[1:], depth)), rest[0])


def _complex(rest: list[Any], depth: int) -> complex:
    real, imag = rest
    return complex(float(real), float(imag))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadWire("a name that is no text")
    return value


_READERS: dict[str, Callable[[list[Any], int], Any]] = {
    "l": lambda rest, depth: list(_all(rest, depth)),
    "t": lambda rest, depth: tuple(_all(rest, depth)),
    "s": lambda rest, depth: set(_all(rest, depth)),
    "z": lambda rest, depth: frozenset(_all(rest, depth)),
    "d": lambda rest, depth: dict(_pairs(rest, depth)),
    "i": lambda rest, depth: int(_text(*rest), 16),
    "b": lambda rest, depth: bytes.fromhex(_text(*rest)),
    "c": _complex,
    "a": _array,
    "k": _kin,
    "o": _record,
    "g": _produced,
}
