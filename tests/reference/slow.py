"""Every formula of palestra.algos once more, one token at a time, on plain lists; None stands for "not trained"."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Row = Sequence[float | None]


def zscore(rewards: Sequence[float], ddof: int, epsilon: float) -> list[float]:
    if len(set(rewards)) == 1:
        return [0.0] * len(rewards)
    mean = math.fsum(rewards) / len(rewards)
    variance = math.fsum((r - mean) ** 2 for r in rewards) / (len(rewards) - ddof)
    return [(r - mean) / (math.sqrt(variance) + epsilon) for r in rewards]


def center(rewards: Sequence[float]) -> list[float]:
    return [r - math.fsum(rewards) / len(rewards) for r in rewards]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    if len(set(rewards)) == 1:
        return [0.0] * len(rewards)
    made = []
    for at, reward in enumerate(rewards):
        others = [r for other, r in enumerate(rewards) if other != at]
        made.append(reward - math.fsum(others) / len(others))
    return made


def max_rl(rewards: Sequence[float]) -> list[float]:
    mean = math.fsum(rewards) / len(rewards)
    return [0.0] * len(rewards) if mean == 0 else [(r - mean) / mean for r in rewards]


def token_log_ratios(now: Sequence[Row], then: Sequence[Row]) -> list[list[float | None]]:
    return [
        [None if a is None or b is None else a - b for a, b in zip(row, other, strict=True)]
        for row, other in zip(now, then, strict=True)
    ]


def sequence_log_ratios(now: Sequence[Row], then: Sequence[Row]) -> list[list[float | None]]:
    made = []
    for row in token_log_ratios(now, then):
        present = [d for d in row if d is not None]
        made.append([None if d is None else math.fsum(present) / len(present) for d in row])
    return made


def unclipped(log_ratio: float, advantage: float) -> float:
    return -math.exp(log_ratio) * advantage


def clip(low: float, high: float, dual: float | None = None) -> Callable[[float, float], float]:
    def loss(log_ratio: float, advantage: float) -> float:
        ratio = math.exp(log_ratio)
        inside = min(max(ratio, 1 - low), 1 + high)
        gain = min(ratio * advantage, inside * advantage)
        if dual is not None and advantage < 0:
            gain = max(gain, dual * advantage)
        return -gain

    return loss


def cispo(low: float, high: float) -> Callable[[float, float], float]:
    return lambda log_ratio, advantage: -min(max(math.exp(log_ratio), 1 - low), 1 + high) * advantage


def sapo(positive: float, negative: float) -> Callable[[float, float], float]:
    def loss(log_ratio: float, advantage: float) -> float:
        tau = positive if advantage > 0 else negative
        return -4 / tau / (1 + math.exp(-tau * (math.exp(log_ratio) - 1))) * advantage

    return loss


def token_mean(losses: Sequence[Row]) -> float:
    present = [loss for row in losses for loss in row if loss is not None]
    return math.fsum(present) / len(present)


def sequence_mean(losses: Sequence[Row]) -> float:
    means = []
    for row in losses:
        present = [loss for loss in row if loss is not None]
        if present:
            means.append(math.fsum(present) / len(present))
    return math.fsum(means) / len(means)


def per_max_len(losses: Sequence[Row], tokens: int) -> float:
    sums = [math.fsum(loss for loss in row if loss is not None) for row in losses if any(x is not None for x in row)]
    return math.fsum(sums) / len(sums) / tokens


def kl_estimate(name: str, log_p: float, log_ref: float) -> float:
    d = log_p - log_ref
    return {"k1": d, "k2": d * d / 2, "k3": math.exp(-d) - 1 + d}[name]
