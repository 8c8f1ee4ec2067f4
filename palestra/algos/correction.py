"""Correction of sampler ≠ trainer: other kernels, other precision, older weights.

Each is a frozen function (proximal_logprobs_BT, behaviour_logprobs_BT, is_trained_BT) -> (weights_BT, is_low_BT,
is_high_BT): what each token's loss is multiplied by, detached; and where the weight was cut from below or above.
Proximal log-probabilities are the trainer's own, of this step's policy before its first update; behaviour's are what
the sampler reported. In a ``Recipe`` the ratio is then the policy's to the proximal policy, and starts at 1: decoupled
PPO (arXiv:2110.00641; AReaL, arXiv:2505.24298). ``ratio`` says at which level weights are taken: ``token_ratio``,
``turn_ratio``, ``sequence_ratio`` (geometric mean) or ``product_ratio`` (whole sequences: unbiased, widest spread).

A sampler that reports no log-probabilities leaves nothing to correct: use the proximal ones for it, weights are then 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

import torch
from torch import Tensor

from palestra.algos.numbers import check_vector
from palestra.algos.ratio import Ratio, bounded_exp, token_ratio
from palestra.errors import TrainError


class Correction(Protocol):
    def __call__(
        self, proximal_logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]: ...


@dataclass(frozen=True)
class Tis:
    """c = min(π_prox/μ, cap): truncated importance sampling; biased where it cuts, but no token loses its gradient.

    cap  2 is what verl and its authors use for tokens; inf leaves the weights unbiased"""

    cap: float = 2.0
    ratio: Ratio = token_ratio

    def __call__(
        self, proximal_logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights_BT = _weights(self.ratio, proximal_logprobs_BT, behaviour_logprobs_BT, is_trained_BT)
        is_high_BT = weights_BT > self.cap
        return weights_BT.clamp_max(self.cap), torch.zeros_like(is_high_BT), is_high_BT


@dataclass(frozen=True)
class Mis:
    """c = π_prox/μ where low <= π_prox/μ <= high, 0 elsewhere: masked importance sampling. With tokens, 0.5 and 5 it is
    IcePop (arXiv:2510.18855); with ``product_ratio`` or ``sequence_ratio`` whole sequences are taken or left.

    Denominators do not change: what is masked counts as a token without a loss, and is reported."""

    low: float = 0.5
    high: float = 5.0
    ratio: Ratio = token_ratio

    def __call__(
        self, proximal_logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        weights_BT = _weights(self.ratio, proximal_logprobs_BT, behaviour_logprobs_BT, is_trained_BT)
        is_low_BT, is_high_BT = weights_BT < self.low, weights_BT > self.high
        return weights_BT.masked_fill(is_low_BT | is_high_BT, 0.0), is_low_BT, is_high_BT


def _weights(ratio: Ratio, proximal_BT: Tensor, behaviour_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    return bounded_exp(ratio(proximal_BT, behaviour_BT, is_trained_BT).detach())


def statistics(weights_BT: Tensor, is_low_BT: Tensor, is_high_BT: Tensor) -> dict[str, Tensor]:
    """What is reported of a correction, to be summed under the loss's weights: correction (mean weight), correction_low
    and _high (share of tokens cut), correction_square and correction_one (for ``effective_share``)."""
    return {
        "correction": weights_BT,
        "correction_low": is_low_BT,
        "correction_high": is_high_BT,
        "correction_square": weights_BT.square(),
        "correction_one": torch.ones_like(weights_BT),
    }


def effective_share(mean: float, square: float, one: float = 1.0) -> float:
    """Effective sample size as a share of the samples, (Σ c)² / (n·Σ c²), in [0, 1]: 1 where all weights are equal.

    From the sums of c, c² and 1 under the same sampling weights. 0 where every weight is 0."""
    return mean**2 / (square * one) if square else 0.0


def effective_size(weights_N: Tensor) -> float:
    """(Σ w)² / Σ w², in samples: 0 where every weight is 0. TrainError for one that is not finite."""
    weights_N = check_vector("importance weight", weights_N)
    return effective_share(float(weights_N.sum()), float(weights_N.square().sum()))


def rate_scale(share: float, *, power: float = 0.5) -> float:
    """Factor of the learning rate by the share of effective samples, share^power: a batch of few effective samples
    takes a small step (VCPO, arXiv:2602.17616, scales by its ESS; the square root, our default, keeps the noise).

    TrainError unless 0 <= share <= 1."""
    if not 0 <= share <= 1:
        raise TrainError(f"a share of effective samples must lie in [0, 1], got {share}")
    return float(share**power)


def age_weights(ages_B: Tensor, *, decay: float = 1.0, oldest: float = inf) -> Tensor:
    """decay^age, and 0 beyond ``oldest``, [B]: age in weight versions between the sampling of a token and this step.

    TrainError for a negative age: a token that was made by weights that do not exist yet."""
    ages_B = check_vector("age", ages_B)
    if bool((ages_B < 0).any()):
        raise TrainError(f"the age of sequence {int(ages_B.argmin())} is {float(ages_B.min())}; an age is >= 0")
    return torch.where(ages_B <= oldest, decay**ages_B, 0.0)
