"""Deep comparison of two rebuilt values under declared rules. Runs where no graded code does.

Nothing is compared by a method of its own: each type has its rule here, and what has no rule is different.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from palestra.errors import GraderError
from palestra.verify.matching import all_floats, can_be_paired, in_order, key_text
from palestra.verify.values import Array, Kin, Produced, Raised, Record

LARGEST_MATCHING = 300
"""Items of an unordered list that are paired one by one, at most."""
_SEQUENCES = (list, tuple)
_NUMBERS = (int, float, complex)


@dataclass(frozen=True, slots=True)
class Rules:
    """When two values are the same.

    Floats a, b are the same when equal, or |a − b| <= max(abs_tol, rel_tol · max(|a|, |b|)), or no more than ``ulp``
    floats apart. Infinities only equal themselves.

    nan_equal     NaN is the same as NaN
    signed_zero   −0.0 and 0.0 differ (only where every tolerance is 0)
    ordered       the order of lists, tuples and iterators counts, at every depth; if not, they are multisets
    strict_types  1 is not 1.0, a list is no tuple, an OrderedDict no dict, an array no list
    bool_is_int   True is 1 and False is 0

    Keys of dicts and members of sets are always compared exactly, by type and value, NaN being the same as NaN; the
    order of a dict never counts. Raises GraderError where a number is negative or not finite."""

    rel_tol: float = 0.0
    abs_tol: float = 0.0
    ulp: int = 0
    nan_equal: bool = True
    signed_zero: bool = False
    ordered: bool = True
    strict_types: bool = True
    bool_is_int: bool = False

    def __post_init__(self) -> None:
        for name in ("rel_tol", "abs_tol", "ulp"):
            if not 0 <= getattr(self, name) < math.inf:
                raise GraderError(f"{name} must be 0 or more and finite, got {getattr(self, name)!r}")

    @property
    def is_tolerant(self) -> bool:
        return self.rel_tol > 0 or self.abs_tol > 0 or self.ulp > 0

    def same(self, got: Any, wanted: Any) -> bool:
        """Raises GraderError where ``wanted`` is an unordered list too long to be matched under a tolerance."""
        got, wanted = self._plain(got), self._plain(wanted)
        if not self.strict_types:
            got, wanted = _loose(got, wanted)
        if type(got) in _NUMBERS and type(wanted) in _NUMBERS:
            return self._numbers(got, wanted)
        if type(got) is not type(wanted):
            return False
        rule = _RULES.get(type(got))
        return rule(self, got, wanted) if rule else bool(got == wanted)

    def _plain(self, value: Any) -> Any:
        if type(value) is bool and self.bool_is_int:
            return int(value)
        if type(value) is Kin and not self.strict_types:
            return self._plain(value.value)
        return value

    def _numbers(self, got: Any, wanted: Any) -> bool:
        if self.strict_types and type(got) is not type(wanted):
            return False
        if type(got) is int and type(wanted) is int:
            return bool(got == wanted)
        if complex in (type(got), type(wanted)):
            return self._floats(got.real, wanted.real) and self._floats(got.imag, wanted.imag)
        return self._floats(got, wanted)

    def _floats(self, got: float, wanted: float) -> bool:
        if got != got or wanted != wanted:
            return self.nan_equal and got != got and wanted != wanted
        if got == wanted:
            exact = self.signed_zero and not self.is_tolerant and got == 0
            return not exact or math.copysign(1, got) == math.copysign(1, wanted)
        return self.is_tolerant and self._near(got, wanted)

    def _near(self, got: float, wanted: float) -> bool:
        try:
            got, wanted = float(got), float(wanted)
        except OverflowError:
            return False  # an integer beyond every float, and not equal
        if math.isinf(got) or math.isinf(wanted):
            return False
        if abs(got - wanted) <= max(self.abs_tol, self.rel_tol * max(abs(got), abs(wanted))):
            return True
        return self.ulp > 0 and abs(_place(got) - _place(wanted)) <= self.ulp

    def _many(self, got: Sequence[Any], wanted: Sequence[Any]) -> bool:
        if len(got) != len(wanted):
            return False
        if self.ordered:
            return all(self.same(a, b) for a, b in zip(got, wanted, strict=True))
        return self._unordered(got, wanted)

    def _unordered(self, got: Sequence[Any], wanted: Sequence[Any]) -> bool:
        if self.strict_types and self.nan_equal and not self.signed_zero and not self.is_tolerant:
            return self._key(list(got)) == self._key(list(wanted))
        if all_floats(got) and all_floats(wanted) and self.rel_tol < 1:
            # What is near enough to a number is an interval that moves with it: if any pairing fits, this one does.
            return all(self._floats(a, b) for a, b in zip(in_order(got), in_order(wanted), strict=True))
        if len(wanted) > LARGEST_MATCHING:
            raise GraderError(f"an unordered list of more than {LARGEST_MATCHING} items cannot be matched")
        return can_be_paired(got, wanted, self.same)

    def _key(self, value: Any) -> str:
        return key_text(value, self._plain, ordered=self.ordered)

    def _dicts(self, got: dict[Any, Any], wanted: dict[Any, Any]) -> bool:
        ours, theirs = ({self._key(key): value for key, value in side.items()} for side in (got, wanted))
        return ours.keys() == theirs.keys() and all(self.same(ours[key], theirs[key]) for key in theirs)

    def _sets(self, got: frozenset[Any], wanted: frozenset[Any]) -> bool:
        return len(got) == len(wanted) and {self._key(item) for item in got} == {self._key(item) for item in wanted}

    def _arrays(self, got: Array, wanted: Array) -> bool:
        if got.shape != wanted.shape or (self.strict_types and got.dtype != wanted.dtype):
            return False
        return all(self.same(a, b) for a, b in zip(got.items, wanted.items, strict=True))

    def _records(self, got: Record, wanted: Record) -> bool:
        return got.type == wanted.type and self._dicts(dict(got.fields), dict(wanted.fields))

    def _produced(self, got: Produced, wanted: Produced) -> bool:
        if not wanted.ended:
            return len(got.items) >= len(wanted.items) and self._many(got.items[: len(wanted.items)], wanted.items)
        return got.ended and self._many(got.items, wanted.items)

    def _kins(self, got: Kin, wanted: Kin) -> bool:
        return got.type == wanted.type and self.same(got.value, wanted.value)


EXACT = Rules()


def _raised(rules: Rules, got: Raised, wanted: Raised) -> bool:
    return bool(wanted.types) and wanted.types[0] in got.types


_RULES: dict[type, Callable[[Rules, Any, Any], bool]] = {
    list: Rules._many,
    tuple: Rules._many,
    dict: Rules._dicts,
    set: Rules._sets,
    frozenset: Rules._sets,
    Array: Rules._arrays,
    Record: Rules._records,
    Produced: Rules._produced,
    Kin: Rules._kins,
    Raised: _raised,
}


def _loose(got: Any, wanted: Any) -> tuple[Any, Any]:
    """Both as the plain type that they share, where they share one."""
    if type(got) is Array or type(wanted) is Array:
        got, wanted = _nested(got), _nested(wanted)
    if type(got) is Produced and type(wanted) in _SEQUENCES and got.ended:
        got = got.items
    if type(wanted) is Produced and type(got) in _SEQUENCES:
        got = Produced(tuple(got))
    if type(got) in _SEQUENCES and type(wanted) in _SEQUENCES:
        return list(got), list(wanted)
    if type(got) in (set, frozenset) and type(wanted) in (set, frozenset):
        return frozenset(got), frozenset(wanted)
    return got, wanted


def _nested(value: Any) -> Any:
    """The lists that an array nests; [] where it is empty, whatever its shape."""
    if type(value) is not Array:
        return value
    items: Any = list(value.items)
    for size in reversed(value.shape if items else ()):
        items = [items[at : at + size] for at in range(0, len(items), size)]
    return items[0] if items else items


def _place(value: float) -> int:
    """The float's place among all floats: neighbours differ by 1, and both zeros are 0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)
