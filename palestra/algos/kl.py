"""Estimators of KL(π ‖ π_ref) from tokens sampled from π, per token (J. Schulman, "Approximating KL divergence", 2020).

Each is a function (logprobs_BT, ref_logprobs_BT) -> [B, T] in nats. With d = log π − log π_ref of the sampled token:

  k1 = d                  unbiased; its gradient as a loss has mean zero, so use it to report, or inside a reward
  k2 = d²/2               biased, low variance; its expected gradient on policy is that of the reverse KL
  k3 = exp(−d) − 1 + d    unbiased, never negative; its gradient is 1 − exp(−d), that of the forward KL

k3 bounds −d by ±20, as a ratio is (``LOG_RATIO_BOUND``). ``exact`` sums over the vocabulary and needs no sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from palestra.algos.numbers import check_finite, masked
from palestra.algos.ratio import LOG_RATIO_BOUND


class Estimator(Protocol):
    def __call__(self, logprobs_BT: Tensor, ref_logprobs_BT: Tensor) -> Tensor: ...


def k1(logprobs_BT: Tensor, ref_logprobs_BT: Tensor) -> Tensor:
    return logprobs_BT - ref_logprobs_BT


def k2(logprobs_BT: Tensor, ref_logprobs_BT: Tensor) -> Tensor:
    return (logprobs_BT - ref_logprobs_BT).square() / 2


def k3(logprobs_BT: Tensor, ref_logprobs_BT: Tensor) -> Tensor:
    d_BT = logprobs_BT - ref_logprobs_BT
    # expm1: near 0 the three terms cancel, and exp − 1 alone would leave rounding of either sign.
    return (-d_BT).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).expm1() + d_BT


def exact(logprobs_BTV: Tensor, ref_logprobs_BTV: Tensor) -> Tensor:
    """KL(π ‖ π_ref) = Σ_v π(v)·(log π(v) − log π_ref(v)) at each position, [B, T] nats; its gradient is exact too.

    A token that π never makes (log π = −inf) adds 0, whatever the reference says of it; one that only the reference
    never makes gives inf, which is right."""
    never_BTV = logprobs_BTV == -float("inf")
    d_BTV = (logprobs_BTV - ref_logprobs_BTV).masked_fill(never_BTV, 0.0)
    return (logprobs_BTV.exp() * d_BTV).sum(-1)


def exact_forward(logprobs_BTV: Tensor, ref_logprobs_BTV: Tensor) -> Tensor:
    """KL(π_ref ‖ π), mass-covering: ``exact`` with the roles changed; the gradient goes through π all the same."""
    return exact(ref_logprobs_BTV, logprobs_BTV)


@dataclass(frozen=True)
class StraightThrough:
    """The value of one estimator with the gradient of another: by default k3's value, unbiased and never negative, and
    k2's gradient, on policy that of the reverse KL (verl's "k3+", OpenRLHF's ``unbiased_gradient``)."""

    value: Estimator = k3
    gradient: Estimator = k2

    def __call__(self, logprobs_BT: Tensor, ref_logprobs_BT: Tensor) -> Tensor:
        through_BT = self.gradient(logprobs_BT, ref_logprobs_BT)
        return self.value(logprobs_BT, ref_logprobs_BT).detach() + through_BT - through_BT.detach()


def of_sequence(estimator: Estimator, logprobs_BT: Tensor, ref_logprobs_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """The estimator at the level of whole sequences, [B]: with d = Σ_t d_t in place of a token's. Not the sum of the
    tokens' estimates, except for k1."""
    now_B, ref_B = (masked(values, is_trained_BT).sum(-1) for values in (logprobs_BT, ref_logprobs_BT))
    return estimator(now_B, ref_B)


def penalised(
    rewards_BT: Tensor,
    logprobs_BT: Tensor,
    ref_logprobs_BT: Tensor,
    is_trained_BT: Tensor,
    *,
    coefficient: float,
    estimator: Estimator = k1,
) -> Tensor:
    """r_t − coefficient·kl_t, detached: KL in the reward, [B, T]; zero where nothing is trained, so that the KL of tool
    output never reaches a return. k1 is right here: its expected gradient is the reverse KL's."""
    check_finite("reward", rewards_BT, is_trained_BT)
    check_finite("log-probability", logprobs_BT, is_trained_BT)
    check_finite("reference log-probability", ref_logprobs_BT, is_trained_BT)
    now_BT, ref_BT = masked(logprobs_BT, is_trained_BT).detach(), masked(ref_logprobs_BT, is_trained_BT)
    return masked(rewards_BT - coefficient * estimator(now_BT, ref_BT), is_trained_BT)
