"""Choose the cases of an environment from what was recorded, so that outcomes are many and none is most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from palestra.envs.bundle import Case

MOST_OF_MANY = 0.2
MOST_OUTCOME = 0.5
MOST_ECHO = 0.35


def choose(cases: Sequence[tuple[Case, bool]], wanted: int, seed: int) -> list[Case]:
    """At most ``wanted`` of ``cases``, each given with whether its outcome is its first argument, such that

    - as few as possible share one outcome: the cap per outcome is the largest with share <= 20 %, or, where there
      are too few outcomes for that, <= 50 %, so that no constant answer is right more than half of the time;
    - at most 35 % have the first argument itself as their outcome.

    Order: doctest cases, then a seeded shuffle. May be empty."""
    documented = [pair for pair in cases if pair[0].source == "doctest"]
    generated = [pair for pair in cases if pair[0].source != "doctest"]
    Random(f"choose:{seed}").shuffle(generated)
    ordered = documented + generated
    capped = _capped(ordered, MOST_OF_MANY)
    if len(capped) < min(wanted, len(ordered)) / 2:
        capped = _capped(ordered, MOST_OUTCOME)
    allowed = int(sum(not echo for _, echo in capped) * MOST_ECHO / (1 - MOST_ECHO))
    chosen = []
    for case, echo in capped:
        if not echo or allowed > 0:
            chosen.append((case, echo))
            allowed -= echo
    return [case for case, _ in _capped(chosen[:wanted], MOST_OUTCOME)]


def _capped(pairs: Sequence[tuple[Case, bool]], most: float) -> list[tuple[Case, bool]]:
    """The longest beginning-first selection in which no outcome has more than the share ``most``."""
    cap = _cap(Counter(case.expected for case, _ in pairs).values(), most)
    taken: Counter[str] = Counter()
    kept = []
    for pair in pairs:
        taken[pair[0].expected] += 1
        if taken[pair[0].expected] <= cap:
            kept.append(pair)
    return kept


def _cap(counts: Iterable[int], most: float) -> int:
    """The largest c with c <= most · Σ min(count, c); 0 where none is (a single outcome)."""
    ordered = sorted(counts, reverse=True)
    low, high = 0, ordered[0] if ordered else 0
    while low < high:
        middle = (low + high + 1) // 2
        top = min(ordered[0], middle)
        if top <= most * sum(min(count, middle) for count in ordered):
            low = middle
        else:
            high = middle - 1
    return low
