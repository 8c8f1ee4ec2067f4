"""Returns by definition, sums over the future one position at a time; None stands for "not trained"."""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[float | None]


def compressed(row: Row) -> list[float]:
    return [x for x in row if x is not None]


def expanded(row: Row, made: Sequence[float]) -> list[float]:
    rest = iter(made)
    return [0.0 if x is None else next(rest) for x in row]


def discounted(row: Row, discount: float, bootstrap: float) -> list[float]:
    """G_t = Σ_k γ^k r_{t+k} + γ^n·bootstrap, n positions being left."""
    rewards = [*compressed(row), bootstrap]
    count = len(rewards) - 1
    return expanded(row, [math.fsum(discount**k * r for k, r in enumerate(rewards[t:])) for t in range(count)])


def gae(rewards: Row, values: Row, discount: float, decay: float, bootstrap: float) -> list[float]:
    """A_t = Σ_k (γλ)^k δ_{t+k}."""
    r, v = compressed(rewards), [*compressed(values), bootstrap]
    deltas = [r[t] + discount * v[t + 1] - v[t] for t in range(len(r))]
    made = [math.fsum((discount * decay) ** k * d for k, d in enumerate(deltas[t:])) for t in range(len(r))]
    return expanded(rewards, made)


def vtrace(
    rewards: Row, values: Row, log_ratios: Row, discount: float, decay: float, cap: float, bootstrap: float
) -> tuple[list[float], list[float]]:
    """v_t = V_t + Σ_k γ^k (Π_{j<k} λ·c_{t+j}) ρ_{t+k} δ_{t+k} (equation 1 of the paper)."""
    r, v = compressed(rewards), [*compressed(values), bootstrap]
    w = [min(cap, math.exp(d)) for d in compressed(log_ratios)]
    targets = []
    for t in range(len(r)):
        total, trace = v[t], 1.0
        for k in range(t, len(r)):
            total += discount ** (k - t) * trace * w[k] * (r[k] + discount * v[k + 1] - v[k])
            trace *= decay * w[k]
        targets.append(total)
    after = [*targets[1:], bootstrap]
    advantages = [w[t] * (r[t] + discount * after[t] - v[t]) for t in range(len(r))]
    return expanded(rewards, advantages), expanded(rewards, targets)
