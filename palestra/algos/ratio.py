"""Importance ratios: how much likelier the policy makes a token now than when it was sampled, as logarithms.

Each is a function (logprobs_BT, behaviour_logprobs_BT, is_trained_BT) -> log_ratios_BT, zero where nothing is trained.
Behaviour log-probabilities are those that the sampler reported when it drew the token.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from palestra.algos.returns import spans

LOG_RATIO_BOUND = 20.0
"""|log ρ| beyond which ``bounded_exp`` stops: e^20 is 5e8, and float32 overflows at e^88."""


class Ratio(Protocol):
    def __call__(self, logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor) -> Tensor: ...


def token_ratio(logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """log ρ_t = log π(a_t) − log μ(a_t), for each token by itself: PPO (arXiv:1707.06347), GRPO."""
    # Masked before the arithmetic: a NaN under the mask must not reach the gradient.
    zero = logprobs_BT.new_zeros(())
    return torch.where(is_trained_BT, logprobs_BT, zero) - torch.where(is_trained_BT, behaviour_logprobs_BT, zero)


def sequence_ratio(logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """log s = mean over the sequence's trained tokens of log ρ_t, the same for each of them: GSPO (arXiv:2507.18071).

    The value at token t is sg[log s] + log π(a_t) − sg[log π(a_t)], so that a gradient of 1 reaches each token's own
    log-probability; with the sequence mean it is GSPO's gradient exactly. A sequence without trained tokens: zeros.
    """
    log_ratios_BT = token_ratio(logprobs_BT, behaviour_logprobs_BT, is_trained_BT)
    lengths_B1 = is_trained_BT.sum(-1, keepdim=True).clamp_min(1)
    return _shared(log_ratios_BT, log_ratios_BT.sum(-1, keepdim=True) / lengths_B1, is_trained_BT)


def product_ratio(logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """log s = Σ over the sequence's trained tokens of log ρ_t: the ratio of whole sequences, unbiased, of a variance
    that grows with the length (TOPR, arXiv:2503.14286, needs it, and bounds it at 1). Gradients as in
    ``sequence_ratio``."""
    log_ratios_BT = token_ratio(logprobs_BT, behaviour_logprobs_BT, is_trained_BT)
    return _shared(log_ratios_BT, log_ratios_BT.sum(-1, keepdim=True), is_trained_BT)


def turn_ratio(logprobs_BT: Tensor, behaviour_logprobs_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """log s = mean of log ρ_t over the trained tokens of the token's own turn (``returns.spans``): GSPO for each turn
    of a rollout by itself. With one turn a row it is ``sequence_ratio``. Gradients as there."""
    log_ratios_BT = token_ratio(logprobs_BT, behaviour_logprobs_BT, is_trained_BT)
    turns_BT = spans(is_trained_BT)
    turns_BT = torch.where(turns_BT < 0, is_trained_BT.shape[1], turns_BT)
    sums_BK = log_ratios_BT.new_zeros(len(turns_BT), is_trained_BT.shape[1] + 1)
    lengths_BK = sums_BK.scatter_add(1, turns_BT, torch.ones_like(log_ratios_BT.detach()))
    sums_BK = sums_BK.scatter_add(1, turns_BT, log_ratios_BT.detach())
    means_BT = (sums_BK / lengths_BK.clamp_min(1)).gather(1, turns_BT)
    return _shared(log_ratios_BT, means_BT, is_trained_BT)


def _shared(log_ratios_BT: Tensor, log_s_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """The value of log_s, the gradient of each token's own log ratio."""
    own_BT = log_ratios_BT - log_ratios_BT.detach()
    return torch.where(is_trained_BT, log_s_BT.detach() + own_BT, log_ratios_BT)


def bounded_exp(log_ratios_BT: Tensor) -> Tensor:
    """ρ = exp(log ρ clamped to ±20), [B, T]. Beyond the bound the gradient is 0; without it, an overflowing ratio
    turns the gradient of a clipped token from 0 into 0·inf = NaN. (verl and SkyRL have the same bound.)"""
    return log_ratios_BT.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()
