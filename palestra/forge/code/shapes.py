"""New values of the shape of a given one.

A literal is its own template: an identifier gives identifiers of the same style, a number numbers of about its size, a
list lists of like items. Nothing here knows any function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from palestra.forge.code.words import ACCENTS, WORDS, plural

T = TypeVar("T")
_PIECE = re.compile(r"[^\W\d_]+|\d+|[\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+")
_PUNCTUATION = ("-", "_", " ", ".", "+", "", ", ", "/", ":")
LETTERS = 3
"""A string of at most so many letters stands for any letters, not for a word."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Draws values. ``near`` are words close to the function at hand, preferred half of the time."""

    rng: Random
    near: tuple[str, ...] = ()
    most_items: int = 6
    is_sorted: bool = False

    def pick(self, options: Sequence[T]) -> T:
        """Three times as fast as Random.choice; the bias, below 2^-40 for such lengths, is nothing here."""
        return options[int(self.rng.random() * len(options))]

    def between(self, low: int, high: int) -> int:
        """A whole number in [low, high]; even to within a double's precision."""
        return low + int(self.rng.random() * (high - low + 1))

    def like(self, value: Any, depth: int = 0) -> Any:
        """A new value of the shape of ``value``: same type all through; None stays None."""
        if value is None:
            return None
        if isinstance(value, bool):
            return self.rng.random() < 0.5
        if isinstance(value, int):
            return self._integer(value, depth)
        if isinstance(value, float):
            return self._float(value)
        if isinstance(value, str):
            return self._text(value, depth)
        if isinstance(value, bytes):
            return self._text(value.decode("latin-1"), depth).encode("utf-8")
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if isinstance(value, tuple) and depth:
            return tuple(self.like(item, depth + 1) for item in value)  # a record: every place has its meaning
        items = self._items(list(value), depth)
        return items if isinstance(value, list) else type(value)(items)

    def _integer(self, value: int, depth: int) -> int:
        size = abs(value)
        if size < 10:
            drawn = self.between(0, 9 if depth else max(4, min(9, size + 3)))
        else:
            digits = max(1, len(str(size)) + self.pick((-1, 0, 0, 0, 1)))
            drawn = self.between(10 ** (digits - 1), 10**digits - 1)
            if size % 10 == 0 and self.rng.random() < 0.3:
                drawn -= drawn % 10
        return -drawn if value < 0 and self.rng.random() < 0.7 else drawn

    def _float(self, value: float) -> float:
        whole, _, fraction = f"{value!r}".partition(".")
        if not fraction.isdigit():
            return value  # inf, nan, or an exponent: kept
        return float(f"{self._integer(int(whole), 1)}.{self.rng.randrange(10 ** len(fraction)):0{len(fraction)}}")

    def _items(self, templates: list[Any], depth: int) -> list[Any]:
        if not templates:
            return []
        most = self.most_items if depth == 0 else max(2, self.most_items // 2)
        count = max(0, min(most, round(self.rng.triangular(0, most, min(most, len(templates))))))
        drawn = [self.like(self.pick(templates), depth + 1) for _ in range(count)]
        if count > 2 and self.rng.random() < 0.35:  # repeats, so that what depends on them is seen
            pool = drawn[: max(2, count // 2)]
            drawn = [self.pick(pool) for _ in range(count)]
        if self.is_sorted and len(templates) > 1 and _is_sorted(templates):
            return sorted(drawn)
        return drawn

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        if depth:
            return {key: self.like(item, depth + 1) for key, item in value.items()}  # a record keeps its field names
        if not value:
            return {}
        pairs = list(value.items())
        count = self.between(0, min(4, len(pairs) + 1))
        chosen = [self.pick(pairs) for _ in range(count)]
        return {self.like(key, 1): self.like(item, 1) for key, item in chosen}

    def _text(self, text: str, depth: int) -> str:
        pieces = _PIECE.findall(text)
        letters = "".join(piece for piece in pieces if piece[0].isalpha())
        if not letters:
            return self._marks(text)
        if text.isalpha() and (len(text) <= LETTERS or _is_run(text)):
            return self._letters(text, depth)
        return self._phrase(pieces)

    def _marks(self, text: str) -> str:
        if any(char.isdigit() for char in text):
            return "".join(str(self.rng.randrange(10)) if char.isdigit() else char for char in text)
        return self.pick(_PUNCTUATION)

    def _letters(self, text: str, depth: int) -> str:
        alphabet = "abcdefghijklmnopqrstuvwxyz"[: self.pick((4, 8, 26))]
        count = 1 if len(text) == 1 else self.between(1 if depth else 0, min(self.most_items, 2 + len(text)))
        drawn = [self.pick(alphabet) for _ in range(count)]
        drawn = sorted(drawn) if self.is_sorted else drawn
        return "".join(drawn).upper() if text.isupper() else "".join(drawn)

    def _phrase(self, pieces: list[str]) -> str:
        """Words in the styles, and with the separators, of the template's; one word more or less."""
        words, gaps, head, tail = _take_apart(pieces)
        count = max(1, min(5, len(words) + self.pick((-1, 0, 0, 0, 1))))
        parts = [head if self.rng.random() < 0.7 else ""]
        for place in range(count):
            if place:
                parts.append(self.pick(gaps) if gaps else self.pick(("", "_", " ")) if len(words) > 1 else "_")
            model = words[min(place, len(words) - 1)] if self.rng.random() < 0.7 else self.pick(words)
            parts.append(self._word(model))
        parts.append(tail if self.rng.random() < 0.7 else "")
        return "".join(parts)

    def _word(self, model: str) -> str:
        if model.isdigit():
            return str(self.rng.randrange(10 ** len(model)))
        pool = self.near if self.near and self.rng.random() < 0.5 else WORDS
        word = self.pick(pool)
        if model.lower().endswith("s") and len(model) > LETTERS and not word.endswith("s") and self.rng.random() < 0.7:
            word = plural(word)
        if not model.isascii():
            spots = [at for at, char in enumerate(word) if char in ACCENTS]
            for at in self.rng.sample(spots, min(len(spots), self.between(1, 2))):
                word = word[:at] + self.pick(ACCENTS[word[at]]) + word[at + 1 :]
        if model.isupper() and len(model) > 1:
            return word.upper()
        return word.capitalize() if model[:1].isupper() else word


def _take_apart(pieces: list[str]) -> tuple[list[str], list[str], str, str]:
    """Words, the gaps between them, and what stands before and after; camel humps are words with an empty gap."""
    words: list[str] = []
    gaps: list[str] = []
    head = tail = ""
    for piece in pieces:
        if piece[0].isalnum():
            humps = [piece] if piece.isdigit() else _CAMEL.findall(piece) or [piece]
            gaps += ["" if not tail else tail] * bool(words) + [""] * (len(humps) - 1)
            words += humps
            tail = ""
        elif words:
            tail = piece
        else:
            head = piece
    return words, gaps, head, tail


def _is_run(text: str) -> bool:
    """Letters in alphabetical order, as in "abcdef": they stand for themselves, not for a word."""
    return len(text) > 1 and all(ord(b) - ord(a) == 1 for a, b in pairwise(text))


def _is_sorted(values: list[Any]) -> bool:
    try:
        return all(a <= b for a, b in pairwise(values))
    except TypeError:
        return False
