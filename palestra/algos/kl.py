"""Estimators of KL(π ‖ π_ref) from tokens sampled from π, per token (J. Schulman, "Approximating KL divergence", 2020).

Each is a function (logprobs_BT, ref_logprobs_BT) -> [B, T] in nats. With d = log π − log π_ref of the sampled token:

  k1 = d                  unbiased; its gradient as a loss has mean zero, so use it to report, or inside a reward
  k2 = d²/2               biased, low variance; its expected gradient on policy is that of the reverse KL
  k3 = exp(−d) − 1 + d    unbiased, never negative; its gradient is 1 − exp(−d), that of the forward KL

k3 bounds −d by ±20, as a ratio is (``LOG_RATIO_BOUND``). ``exact`` sums over the vocabulary and needs no sample.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

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
