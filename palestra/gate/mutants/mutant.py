"""What a mutator gives: sources with one change each, and those left out because the change changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    """source    the whole text with one change made
    operator  the family that made it: "arithmetic", "boundary", …
    line      where the change stands, counted from 1
    diff      unified, one line of context
    """

    source: str
    operator: str
    line: int
    diff: str

    def plain(self) -> dict[str, Any]:
        return {"operator": self.operator, "line": self.line, "diff": self.diff}


@dataclass(frozen=True, slots=True)
class Mutants:
    """live        those that a good test suite must kill, in order of the source
    equivalent  those that behave as the original, each with the rule that says so
    of          how many live ones there were before any limit
    """

    live: tuple[Mutant, ...]
    equivalent: tuple[tuple[Mutant, str], ...]
    of: int


def make(before: str, after: str, operator: str, line: int, name: str) -> Mutant:
    """The mutant ``after`` of the file ``name`` that reads ``before``."""
    return Mutant(after, operator, line, one_hunk(_lines(before), _lines(after), name))


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def one_hunk(before: Sequence[str], after: Sequence[str], name: str) -> str:
    """A unified diff of two texts that differ in one place, with one line of context."""
    shortest = min(len(before), len(after))
    head = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    tail = next((n for n in range(shortest - head) if before[-1 - n] != after[-1 - n]), shortest - head)
    start, rest = max(0, head - 1), max(0, tail - 1)
    old, new = before[start : len(before) - rest], after[start : len(after) - rest]
    lines = [f"--- a/{name}", f"+++ b/{name}", f"@@ -{start + 1},{len(old)} +{start + 1},{len(new)} @@"]
    lines += [f" {line}" for line in before[start:head]]
    lines += [f"-{line}" for line in before[head : len(before) - tail]]
    lines += [f"+{line}" for line in after[head : len(after) - tail]]
    lines += [f" {line}" for line in before[len(before) - tail : len(before) - rest]]
    return "\n".join(lines)


def sample(mutants: Sequence[Mutant], limit: int | None, seed: int) -> tuple[Mutant, ...]:
    """At most ``limit`` of them, one operator after another so that none is crowded out, in order of the source."""
    if limit is None or len(mutants) <= limit:
        return tuple(mutants)
    by_operator: dict[str, list[int]] = {}
    for place, mutant in enumerate(mutants):
        by_operator.setdefault(mutant.operator, []).append(place)
    random = Random(f"mutants:{seed}")
    queues = [by_operator[name] for name in sorted(by_operator)]
    for queue in queues:
        random.shuffle(queue)
    random.shuffle(queues)
    chosen: list[int] = []
    while len(chosen) < limit:
        queues = [queue for queue in queues if queue]
        chosen += [queue.pop() for queue in queues[: limit - len(chosen)]]
    return tuple(mutants[place] for place in sorted(chosen))
