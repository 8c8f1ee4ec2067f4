"""Ratios, weights and selections over sequences and turns once more, by plain loops; None is "not trained"."""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[float | None]


def turns(row: Sequence[object]) -> list[list[int]]:
    """Positions of each run of entries that are not None."""
    made: list[list[int]] = []
    for at, value in enumerate(row):
        if value is None:
            continue
        if at == 0 or row[at - 1] is None:
            made.append([])
        made[-1].append(at)
    return made


def turn_log_ratios(now: Sequence[Row], then: Sequence[Row]) -> list[list[float | None]]:
    made = []
    for a, b in zip(now, then, strict=True):
        row: list[float | None] = [None] * len(a)
        for turn in turns(a):
            mean = math.fsum(a[t] - b[t] for t in turn) / len(turn)  # type: ignore[operator]
            for t in turn:
                row[t] = mean
        made.append(row)
    return made


def product_log_ratios(now: Sequence[Row], then: Sequence[Row]) -> list[list[float | None]]:
    made = []
    for a, b in zip(now, then, strict=True):
        total = math.fsum(x - y for x, y in zip(a, b, strict=True) if x is not None and y is not None)
        made.append([None if x is None else total for x in a])
    return made


def geometric_mean(row: Row, advantage: float, low: float, high: float) -> float:
    ds = [min(d, high) if advantage > 0 else max(d, -low) for d in row if d is not None]
    return -advantage * math.prod(math.exp(d) for d in ds) ** (1 / len(ds))


def unit_mean(losses: Sequence[Row], units: Sequence[Sequence[object]]) -> float:
    """Mean over units of the mean over each unit's tokens."""
    of: dict[object, list[float]] = {}
    for row, names in zip(losses, units, strict=True):
        for loss, name in zip(row, names, strict=True):
            if loss is not None:
                of.setdefault(name, []).append(loss)
    means = [math.fsum(found) / len(found) for found in of.values()]
    return math.fsum(means) / len(means)
