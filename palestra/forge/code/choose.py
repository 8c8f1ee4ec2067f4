"""Choose the cases of an environment from what was recorded, so that outcomes are many and none is most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from random import Random

from palestra.envs.bundle import Case

MOST_OUTCOME = 0.5
MOST_ECHO = 0.35


def choose(cases: list[Case], first_argument: Callable[[Case], str], wanted: int, seed: int) -> list[Case]:
    """At most ``wanted`` of ``cases``, doctest cases first, such that

    - as few as possible share one outcome: the cap per outcome is the largest with share <= 20 %, or, where there
      are too few outcomes for that, <= 50 %, so that no constant answer is right more than half of the time;
    - at most 35 % have the first argument itself as their outcome.

    Order: doctest cases, then a seeded shuffle. May be empty."""
    rng = Random(f"choose:{seed}")
    generated = [case for case in cases if case.source != "doctest"]
    rng.shuffle(generated)
    kept = [case for case in cases if case.source == "doctest"] + generated
    for most in (0.2, MOST_OUTCOME):
        capped = _capped(kept, lambda case: case.expected, most)
        if len(capped) >= min(wanted, len(kept)) * 0.5 or most == MOST_OUTCOME:
            break
    echoes = [first_argument(case) == case.expected for case in capped]
    others = len(echoes) - sum(echoes)
    allowed = int(others * MOST_ECHO / (1 - MOST_ECHO))
    chosen: list[Case] = []
    for case, echo in zip(capped, echoes, strict=True):
        if not echo or allowed > 0:
            chosen.append(case)
            allowed -= echo
    return _capped(chosen[:wanted], lambda case: case.expected, MOST_OUTCOME)


def _capped(cases: list[Case], key: Callable[[Case], Hashable], most: float) -> list[Case]:
    """The longest beginning-first selection in which no key has more than the share ``most``."""
    counts = Counter(key(case) for case in cases)
    cap = _cap(counts.values(), most)
    taken: Counter[Hashable] = Counter()
    kept = []
    for case in cases:
        taken[key(case)] += 1
        if taken[key(case)] <= cap:
            kept.append(case)
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
