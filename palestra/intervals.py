"""Proportions with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt


@dataclass(frozen=True)
class Proportion:
    """Successes in independent trials, with the 95 % Wilson interval."""

    successes: int
    trials: int

    @property
    def value(self) -> float:
        return self.successes / self.trials

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.successes, self.trials)

    def to_plain(self) -> dict[str, float | int]:
        low, high = self.interval
        return {"acc": self.value, "lo": low, "hi": high, "n": self.trials}


def wilson(successes: int, trials: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's score interval of a proportion (E. B. Wilson, 1927); ``z`` = 1.96 gives 95 %.

        centre ± half,   centre = (p + z²/2n) / (1 + z²/n),   half = z·√(p(1−p)/n + z²/4n²) / (1 + z²/n)

    Unlike p ± z·√(p(1−p)/n) it stays in [0, 1] and is not empty at p = 0 or 1. Raises ValueError without trials.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"a proportion needs 0 <= successes <= trials and a trial, got {successes} of {trials}")
    p, shrink = successes / trials, 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / shrink
    half = z * sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / shrink
    return max(0.0, centre - half), min(1.0, centre + half)
