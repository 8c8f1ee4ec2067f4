"""Surrogates: ratio and advantage to a loss per token, to be minimised.

Each is a frozen function (log_ratios_BT, advantages_B1, is_trained_BT) -> (losses_BT, is_low_BT, is_high_BT); the last
two masks say which tokens' gradients were cut or bounded because their ratio ran below or above the range. Advantages
are [B, 1], or [B, T] where they differ between the tokens of a sequence. log_ratios_BT is 0 where nothing is trained,
which only those that sum over a sequence need to know. Ratios are exponentiated with a bound (``bounded_exp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from palestra.algos.ratio import bounded_exp


class Surrogate(Protocol):
    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]: ...


@dataclass(frozen=True)
class Unclipped:
    """L = −ρ·A. At ρ = 1 its gradient is REINFORCE's, −A·∇log π."""

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        nowhere_BT = torch.zeros_like(log_ratios_BT, dtype=torch.bool)
        return -bounded_exp(log_ratios_BT) * advantages_B1, nowhere_BT, nowhere_BT


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

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        ratios_BT = bounded_exp(log_ratios_BT)
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


@dataclass(frozen=True)
class Cispo:
    """L = −sg[min(ρ, 1 + high)]·A·log π (arXiv:2506.13585): the weight is bounded, but no token loses its gradient.

    The value is −sg[w]·A·(1 + log ρ − sg[log ρ]), w the bounded weight: that gradient, in the other surrogates' units.

    low, high  bounds of the weight, 1 − low <= w <= 1 + high; low = 1 leaves it unbounded below (the paper's choice).
               TRL's ``epsilon_high`` is 1 + high. Both 0: no ratio at all, −A·∇log π whatever the sampler was.
    """

    low: float = 1.0
    high: float = 4.0

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        ratios_BT = bounded_exp(log_ratios_BT.detach())
        weights_BT = ratios_BT.clamp(1 - self.low, 1 + self.high)
        through_BT = 1 + log_ratios_BT - log_ratios_BT.detach()
        return -weights_BT * advantages_B1 * through_BT, ratios_BT < 1 - self.low, ratios_BT > 1 + self.high


@dataclass(frozen=True)
class Sapo:
    """L = −(4/τ)·sigmoid(τ·(ρ − 1))·A, τ by the sign of A (arXiv:2511.20347): a soft gate instead of a clip.

    At ρ = 1 the gradient is REINFORCE's; it fades smoothly on both sides, faster for a larger τ. Nothing is cut, so
    both masks are False. positive, negative  τ for A > 0 and for A <= 0.
    """

    positive: float = 1.0
    negative: float = 1.05

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        ratios_BT = bounded_exp(log_ratios_BT)
        is_positive_B1 = advantages_B1 > 0
        tau_B1 = torch.where(is_positive_B1, self.positive, self.negative).to(ratios_BT.dtype)
        gates_BT = 4 / tau_B1 * (tau_B1 * (ratios_BT - 1)).sigmoid()
        nowhere_BT = torch.zeros_like(ratios_BT, dtype=torch.bool)
        return -gates_BT * advantages_B1, nowhere_BT, nowhere_BT


@dataclass(frozen=True)
class Signed:
    """One surrogate where A > 0, another elsewhere: asymmetric treatment of good and bad rollouts.

    ``Signed(Cispo(0, 0), Cispo(1, 0))`` over ``product_ratio`` is TOPR's taper (arXiv:2503.14286): good rollouts as in
    supervised training, bad ones by a sequence ratio bounded to [0, 1], so that what was forgotten is not pushed on."""

    positive: Surrogate
    negative: Surrogate

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        good = self.positive(log_ratios_BT, advantages_B1, is_trained_BT)
        bad = self.negative(log_ratios_BT, advantages_B1, is_trained_BT)
        losses_BT, is_low_BT, is_high_BT = (
            torch.where(advantages_B1 > 0, one, other) for one, other in zip(good, bad, strict=True)
        )
        return losses_BT, is_low_BT, is_high_BT


@dataclass(frozen=True)
class GeometricMean:
    """L = −A·exp(mean_t d_t) on every token of a sequence, d_t = min(log ρ_t, high) where A > 0, max(log ρ_t, −low)
    elsewhere: GMPO (arXiv:2507.20673), whose bounds stand at the token and in logarithms.

    One advantage per sequence, token ratios, and ``SequenceMean``, under which it is the paper's loss and gradient."""

    low: float = 0.4
    high: float = 0.4

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        is_good_B1 = advantages_B1 > 0
        cut_BT = torch.where(is_good_B1, log_ratios_BT.clamp_max(self.high), log_ratios_BT.clamp_min(-self.low))
        mean_B1 = cut_BT.sum(-1, keepdim=True) / is_trained_BT.sum(-1, keepdim=True).clamp_min(1)
        losses_BT = (-bounded_exp(mean_B1) * advantages_B1).expand_as(log_ratios_BT)
        return losses_BT, ~is_good_B1 & (log_ratios_BT < -self.low), is_good_B1 & (log_ratios_BT > self.high)


@dataclass(frozen=True)
class Regression:
    """L = (β·Σ_t log ρ_t − A)² on every token of a sequence: the advantage regressed on the sequence's log ratio, as in
    A*-PO (arXiv:2505.20686; there A = r − V* and ρ is to the reference policy).

    One advantage per sequence, token ratios, and ``SequenceMean``. At ρ = 1 its gradient is −2β·A·∇log π(sequence)."""

    beta: float = 1.0

    def __call__(
        self, log_ratios_BT: Tensor, advantages_B1: Tensor, is_trained_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        nowhere_BT = torch.zeros_like(log_ratios_BT, dtype=torch.bool)
        apart_B1 = self.beta * log_ratios_BT.sum(-1, keepdim=True) - advantages_B1
        return apart_B1.square().expand_as(log_ratios_BT), nowhere_BT, nowhere_BT
