"""Importance ratios: how much likelier the policy makes a token now than when it was sampled, as logarithms.

Each is a function (logprobs_BT, behaviour_logprobs_BT, is_trained_BT) -> log_ratios_BT, zero where nothing is trained.
Behaviour log-probabilities are those that the sampler reported when it drew the token.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

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
    log_s_B1 = (log_ratios_BT.sum(-1, keepdim=True) / lengths_B1).detach()
    own_BT = log_ratios_BT - log_ratios_BT.detach()
    return torch.where(is_trained_BT, log_s_B1 + own_BT, log_ratios_BT)


def bounded_exp(log_ratios_BT: Tensor) -> Tensor:
    """ρ = exp(log ρ clamped to ±20), [B, T]. Beyond the bound the gradient is 0; without it, an overflowing ratio
    turns the gradient of a clipped token from 0 into 0·inf = NaN. (verl and SkyRL have the same bound.)"""
    return log_ratios_BT.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()
