"""Shaping: rewards and advantages bent on purpose. Each is a named function, so that what was bent can be read."""

from __future__ import annotations

import torch
from torch import Tensor

from palestra.algos.numbers import check_vector, masked
from palestra.errors import TrainError


def by_entropy(
    advantages_BT: Tensor, entropy_BT: Tensor, is_trained_BT: Tensor, *, alpha: float = 0.4, kappa: float = 2.0
) -> Tensor:
    """A' = A + min(α·H, |A|/κ): more for tokens at which the policy was undecided (arXiv:2506.14758), [B, T].

    H in nats, detached. With κ > 1 no sign can flip; where A is 0 nothing is added. Zero where nothing is trained."""
    advantages_BT, entropy_BT = (masked(values, is_trained_BT) for values in (advantages_BT, entropy_BT.detach()))
    return advantages_BT + torch.minimum(alpha * entropy_BT, advantages_BT.abs() / kappa)


def by_position(advantages_BT: Tensor, is_trained_BT: Tensor, *, first: float, last: float) -> Tensor:
    """A' = A·w, w running linearly from ``first`` on a row's first trained token to ``last`` on its last, [B, T].

    A row with one trained token: ``first``."""
    places_BT = (is_trained_BT.cumsum(-1) - 1).clamp_min(0)
    lengths_B1 = is_trained_BT.sum(-1, keepdim=True)
    shares_BT = places_BT / (lengths_B1 - 1).clamp_min(1)
    return masked(advantages_BT, is_trained_BT) * (first + (last - first) * shares_BT)


def by_sign(advantages: Tensor, *, positive: float = 1.0, negative: float = 1.0) -> Tensor:
    """A' = A·positive where A > 0, A·negative where A < 0, of any shape.

    positive=0.1 is W-REINFORCE, 0 learns from failures alone (arXiv:2506.01347); negative=0 is learning from successes
    alone."""
    return torch.where(advantages > 0, advantages * positive, advantages * negative)


def length_reward(lengths_G: Tensor, is_right_G: Tensor) -> Tensor:
    """λ = ½ − (length − shortest)/(longest − shortest); right: λ, wrong: min(0, λ) (Kimi k1.5, arXiv:2501.12599), [G].

    To be added to the rewards, by a weight. Lengths all equal: zeros."""
    lengths_G = check_vector("length of rollout", lengths_G)
    shortest, longest = lengths_G.min(), lengths_G.max()
    if bool(shortest == longest):
        return torch.zeros_like(lengths_G)
    value_G = 0.5 - (lengths_G - shortest) / (longest - shortest)
    return torch.where(is_right_G, value_G, value_G.clamp_max(0.0))


def tool_penalty(errors_G: Tensor, *, each: float, most: float) -> Tensor:
    """−min(each·errors, most), to be added to the rewards: a price for calls that failed, bounded so that a rollout
    which tries and recovers can still beat one that never tried, [G]. TrainError for a negative price."""
    if each < 0 or most < 0:
        raise TrainError(f"a penalty's price and bound must be >= 0, got each {each}, most {most}")
    return -(each * check_vector("count of errors of rollout", errors_G)).clamp_max(most)
