"""Surrogates: ratio and advantage to a loss per token, to be minimised.

Each is a frozen function (log_ratios_BT, advantages_B1) -> (losses_BT, is_low_BT, is_high_BT); the two masks say which
tokens' gradients were cut because their ratio ran below or above the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Surrogate(Protocol):
    def __call__(self, log_ratios_BT: Tensor, advantages_B1: Tensor) -> tuple[Tensor, Tensor, Tensor]: ...


@dataclass(frozen=True)
class Unclipped:
    """L = −ρ·A. At ρ = 1 its gradient is REINFORCE's, −A·∇log π."""

    def __call__(self, log_ratios_BT: Tensor, advantages_B1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        nowhere_BT = torch.zeros_like(log_ratios_BT, dtype=torch.bool)
        return -log_ratios_BT.exp() * advantages_B1, nowhere_BT, nowhere_BT


@dataclass(frozen=True)
class Clip:
    """L = −min(ρ·A, clip(ρ, 1 − low, 1 + high)·A): PPO (arXiv:1707.06347); high > low is DAPO's clip-higher
    (arXiv:2503.14476), which lets unlikely good tokens grow.

    dual: with A < 0, L is also at most −dual·A, so that one unlikely bad token cannot swamp a batch
    (dual-clip PPO, arXiv:1912.09729; verl always uses 3); None for none.
    """

    low: float = 0.2
    high: float = 0.2
    dual: float | None = None

    def __call__(self, log_ratios_BT: Tensor, advantages_B1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ratios_BT = log_ratios_BT.exp()
        plain_BT = -ratios_BT * advantages_B1
        clipped_BT = -ratios_BT.clamp(1 - self.low, 1 + self.high) * advantages_B1
        losses_BT = torch.maximum(plain_BT, clipped_BT)
        is_low_BT = (ratios_BT < 1 - self.low) & (advantages_B1 < 0)
        is_high_BT = (ratios_BT > 1 + self.high) & (advantages_B1 > 0)
        if self.dual is not None:
            bound_BT = (-self.dual * advantages_B1).expand_as(losses_BT)
            is_dual_BT = (advantages_B1 < 0) & (losses_BT > bound_BT)
            losses_BT = torch.where(is_dual_BT, bound_BT, losses_BT)
            is_high_BT = is_high_BT | is_dual_BT
        return losses_BT, is_low_BT, is_high_BT
