"""Further credits of a group: other baselines than the mean of the rewards, and other scales than their deviation."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import ClassVar

import torch
from torch import Tensor

from palestra.algos.credit import NO_FACTS, Facts, checked, is_flat
from palestra.algos.numbers import check_vector
from palestra.errors import TrainError


@dataclass(frozen=True)
class LengthWeighted:
    """A_i = r_i − Σ l·r / Σ l, l the sampled tokens of a rollout: OPO (arXiv:2505.23585).

    The baseline of least variance where a rollout's squared gradient grows as its length. A flat group: zeros."""

    needs: ClassVar[frozenset[str]] = frozenset({"lengths_G"})

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        lengths_G = check_vector("length of a rollout", facts.need("lengths_G", self), len(rewards_G))
        return _minus_weighted_mean(rewards_G, lengths_G)


@dataclass(frozen=True)
class MinimumVariance:
    """A_i = r_i − Σ w²·l·r / Σ w²·l, w = exp(log weight): the baseline of least variance off policy (VCPO,
    arXiv:2602.17616), with the length standing for the squared gradient. At w = 1 it is ``LengthWeighted``."""

    needs: ClassVar[frozenset[str]] = frozenset({"lengths_G", "log_weights_G"})

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        lengths_G = check_vector("length of a rollout", facts.need("lengths_G", self), len(rewards_G))
        log_weights_G = check_vector("log weight of a rollout", facts.need("log_weights_G", self), len(rewards_G))
        # A common factor cancels: the largest weight is 1, so that nothing overflows.
        squares_G = (2 * (log_weights_G - log_weights_G.max())).exp()
        return _minus_weighted_mean(rewards_G, squares_G * lengths_G)


def _minus_weighted_mean(rewards_G: Tensor, weights_G: Tensor) -> Tensor:
    if bool((weights_G < 0).any()) or float(weights_G.sum()) <= 0:
        raise TrainError(f"the weights of a baseline must be >= 0 and not all 0, got {weights_G.tolist()}")
    if is_flat(rewards_G):
        return torch.zeros_like(rewards_G)
    return rewards_G - (weights_G * rewards_G).sum() / weights_G.sum()


@dataclass(frozen=True)
class Greedy:
    """A_i = r_i − r(greedy rollout of the task): ReMax (arXiv:2310.10505). A group of one has a comparison here."""

    needs: ClassVar[frozenset[str]] = frozenset({"greedy_reward"})

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        return rewards_G - checked(facts.need("greedy_reward", self).reshape(1))


@dataclass(frozen=True)
class Median:
    """A_i = (r_i − median(r)) / scale: MC-GRPO (arXiv:2601.22582); an outlier does not move it.

    The median of an even number is the mean of the middle two. scaled  divide by the deviation from the median,
    √(Σ (r − median)² / (G − 1)) + ε; otherwise by 1. A flat group: zeros."""

    scaled: bool = True
    epsilon: float = 1e-6

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        if is_flat(rewards_G):
            return torch.zeros_like(rewards_G)
        apart_G = rewards_G - rewards_G.quantile(0.5)
        if not self.scaled:
            return apart_G
        return apart_G / ((apart_G.square().sum() / (len(rewards_G) - 1)).sqrt() + self.epsilon)


@dataclass(frozen=True)
class Quantile:
    """A_i = (r_i − Q_q(r)) / (std(r) + ε): quantile advantage estimation (arXiv:2509.22611).

    Q_q is the lower q-quantile, the smallest reward that at least a share q of the group does not exceed. For rewards
    of 0 and 1: where successes are rarer than 1 − q only they count, otherwise only the failures do. A flat group:
    zeros."""

    quantile: float = 0.4
    epsilon: float = 1e-6

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        if is_flat(rewards_G):
            return torch.zeros_like(rewards_G)
        return (rewards_G - lower_quantile(rewards_G, self.quantile)) / (rewards_G.std() + self.epsilon)


def lower_quantile(values_N: Tensor, share: float) -> Tensor:
    """The smallest of the values that at least ``share`` of them do not exceed, []. TrainError outside (0, 1]."""
    if not 0 < share <= 1:
        raise TrainError(f"a quantile must lie in (0, 1], got {share}")
    ordered_N = values_N.sort().values
    # −1e-9: 0.4·5 must be the second, whatever the last bit of 0.4 is.
    return ordered_N[max(-int(-(share * len(values_N) - 1e-9) // 1), 1) - 1]


@dataclass(frozen=True)
class PassAtK:
    """Advantages of the group's pass@k, in expectation over its subsets of k (arXiv:2508.10751, analytical form).

    With N rollouts of which n are wrong: R = 1 − C(n, k)/C(N, k), σ = √(R·(1 − R)),
    A(right) = (1 − R)/σ,   A(wrong) = (1 − R − C(n − 1, k − 1)/C(N − 1, k − 1))/σ.

    A reward is right from ``threshold`` on. At k = 1 it is the z-score over 0 and 1 (dividing by N). Where every
    subset of k holds a right one, or none does, σ is 0: zeros. TrainError for a group smaller than k."""

    k: int
    threshold: float = 1.0

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        size = len(rewards_G)
        if not 1 <= self.k <= size:
            raise TrainError(f"pass@k needs 1 <= k <= the group's size, got k = {self.k} of {size}")
        is_right_G = rewards_G >= self.threshold
        wrong = size - int(is_right_G.sum())
        fails = comb(wrong, self.k) / comb(size, self.k)
        if fails in (0.0, 1.0):
            return torch.zeros_like(rewards_G)
        deviation = (fails * (1 - fails)) ** 0.5
        others_fail = comb(wrong - 1, self.k - 1) / comb(size - 1, self.k - 1)
        return torch.where(is_right_G, fails / deviation, (fails - others_fail) / deviation).to(rewards_G.dtype)
