"""The scan itself: the gold's n-grams, hidden values, whole hidden files, and lines that fetch the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from palestra.gate.leaks.visible import Visible

SHOWN = 60
"""Characters of evidence."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """gram     tokens in an n-gram of the gold
    share     share of the gold's distinct n-grams that may be visible
    run       tokens of the gold that may stand in sight in one piece
    letters   a hidden value with fewer is too common to prove anything, and is not sought
    values    distinct hidden values that may be visible
    file      bytes from which on a whole hidden file in sight counts
    """

    gram: int = 6
    share: float = 0.2
    run: int = 30
    letters: int = 6
    values: int = 0
    file: int = 32


@dataclass(frozen=True)
class Hidden:
    """What must not be in sight.

    gold      name -> text of each part of the solution that the agent has to find itself
    values    expected results, hidden inputs: texts
    files     name -> bytes of each hidden file
    packages  names of packages whose installation gives the answer
    public    texts that the agent is meant to see, though they also stand in the gold: signatures, the rest of a module
    """

    gold: Mapping[str, str] = field(default_factory=dict)
    values: Sequence[str] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    packages: Sequence[str] = ()
    public: Sequence[str] = ()

    @cached_property
    def digests(self) -> dict[str, str]:
        return {sha256(data).hexdigest(): name for name, data in self.files.items()}


@dataclass(frozen=True, slots=True)
class Leak:
    """kind   "gold", "value", "file", "fetch", "history" or "unseen"
    file   where, in the words of ``Visible``;  ``line`` from 1, 0 where the whole file is meant
    found  what was seen, shortened
    told   the rule, and what to change
    """

    kind: str
    file: str
    line: int
    found: str
    told: str

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "file": self.file, "line": self.line, "found": self.found, "told": self.told}


def scan(visible: Sequence[Visible], hidden: Hidden, limits: Thresholds = Thresholds()) -> list[Leak]:
    """Every leak, file by file. Values that are found count together: up to ``limits.values`` of them are let pass."""
    leaks: list[Leak] = []
    values: list[Leak] = []
    for seen in visible:
        leaks += _of_file(seen, hidden, limits)
        if seen.data is not None:
            text = seen.data.decode(errors="replace")
            leaks += [*_gold(seen.name, text, hidden, limits), *_fetched(seen.name, text, hidden)]
            values += _values(seen.name, text, hidden, limits)
    return leaks + (values if len({leak.found for leak in values}) > limits.values else [])


def _of_file(seen: Visible, hidden: Hidden, limits: Thresholds) -> Iterator[Leak]:
    if seen.data is None:
        yield Leak("unseen", seen.name, 0, "", "cannot be read or is too large to be scanned: take it out or unpack it")
    elif len(seen.data) >= limits.file and (name := hidden.digests.get(sha256(seen.data).hexdigest())):
        yield Leak("file", seen.name, 0, name, f"is the hidden file {name}: take it out")
    parts = seen.name.split("/")
    if ".git" in parts and parts[-1] in ("packed-refs", "HEAD") and parts[-2] in (".git", "logs"):
        told = "carries a history, in which the answer may stand: make the repository anew, when the task starts"
        yield Leak("history", seen.name, 0, ".git", told)


_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[^\w\s]")


def tokens_of(text: str) -> list[tuple[str, int]]:
    """The words, numbers, texts and signs of ``text``, each with its line; blanks and kinds of quotes do not count."""
    found: list[tuple[str, int]] = []
    for number, line in enumerate(text.split("\n"), 1):
        found += [(token.replace('"', "'"), number) for token in _TOKEN.findall(line)]
    return found


Gram = tuple[str, ...]


def grams_of(tokens: Sequence[tuple[str, int]], size: int) -> list[Gram]:
    return [tuple(token for token, _ in tokens[n : n + size]) for n in range(len(tokens) - size + 1)]


def _gold(name: str, text: str, hidden: Hidden, limits: Thresholds) -> Iterator[Leak]:
    """The share of the gold's n-grams in ``text``, and the longest run of them."""
    seen = tokens_of(text)
    here = grams_of(seen, limits.gram)
    public = {gram for shown in hidden.public for gram in grams_of(tokens_of(shown), limits.gram)}
    for part, gold in hidden.gold.items():
        secret = set(grams_of(tokens_of(gold), limits.gram)) - public
        places = [place for place, gram in enumerate(here) if gram in secret]
        if not places:
            continue
        share = len({here[place] for place in places}) / len(secret)
        start, length = _longest(places)
        run = length + limits.gram - 1
        if share > limits.share or run > limits.run:
            found = " ".join(token for token, _ in seen[start : start + run])[:SHOWN]
            told = f"shows {share:.0%} of {part}, {run} tokens of it in one piece: take it out"
            yield Leak("gold", name, seen[start][1], found, told)


def _longest(places: Sequence[int]) -> tuple[int, int]:
    """Where the longest row of successive numbers starts, and how long it is."""
    best, start = (places[0], 1), 0
    for n in range(1, len(places) + 1):
        if n == len(places) or places[n] != places[n - 1] + 1:
            if n - start > best[1]:
                best = (places[start], n - start)
            start = n
    return best


def _values(name: str, text: str, hidden: Hidden, limits: Thresholds) -> Iterator[Leak]:
    """Hidden values that stand in ``text``, not as a part of a longer word or number."""
    wanted = {value for value in hidden.values if len(value) >= limits.letters}
    starts = {text[n : n + limits.letters] for n in range(len(text) - limits.letters + 1)}
    for value in sorted(value for value in wanted if value[: limits.letters] in starts and value in text):
        found = re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.]\w|\w)", text)
        if found:
            line = text.count("\n", 0, found.start()) + 1
            yield Leak("value", name, line, value[:SHOWN], "shows a hidden value: take it out, or hide another")


_FETCHES = re.compile(
    r"\b(pip3?|uv|conda|mamba|apt|apt-get|npm|cargo|gem)\b.*\b(install|add|download)\b", re.IGNORECASE
)
_COPIES = re.compile(r"^\s*(?:COPY|ADD)\b.*\b(solution|tests)(?:/|\s|$)", re.IGNORECASE)


def _fetched(name: str, text: str, hidden: Hidden) -> Iterator[Leak]:
    """Lines of a build file that put the answer, or the package that it comes from, where the agent is."""
    is_list = re.search(r"(^|/)(requirements[^/]*\.txt|constraints[^/]*\.txt|environment\.ya?ml)$", name) is not None
    for number, line in _logical_lines(text):
        found = _COPIES.match(line)
        if found:
            told = f"copies {found.group(1)}/ to where the agent is: leave the line out"
            yield Leak("fetch", name, number, line.strip()[:SHOWN], told)
        if is_list or _FETCHES.search(line):
            for package in hidden.packages:
                if re.search(rf"(?<![\w.-]){re.escape(package)}(?![\w-])", line, re.IGNORECASE):
                    told = f"installs {package}, whose source is the answer: leave the line out"
                    yield Leak("fetch", name, number, line.strip()[:SHOWN], told)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; one that ends in a backslash goes on in the next."""
    first, joined = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        first = first or number
        joined += line.removesuffix("\\") if line.endswith("\\") else line
        if not line.endswith("\\"):
            yield first, joined
            first, joined = 0, ""
    if joined:
        yield first, joined
