"""Regularisers of the entropy: which tokens make it collapse, and how hard to pull against it.

The entropy bonus itself is ``Recipe.entropy_coefficient``. The covariance of a token says how much a policy-gradient
step on it changes the entropy (arXiv:2505.22617): likely and good, or unlikely and bad, lowers it. Both selections are
of a whole batch, as a share of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from palestra.algos.numbers import check_finite, masked
from palestra.errors import TrainError


def covariance(logprobs_BT: Tensor, advantages_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """(log π_t − mean log π)·(A_t − mean A), means over the trained tokens, detached, [B, T]; 0 elsewhere.

    TrainError where no token is trained."""
    if not bool(is_trained_BT.any()):
        raise TrainError("no token is trained, so there is no mean to take a covariance from")
    apart = []
    for what, values_BT in (("log-probability", logprobs_BT), ("advantage", advantages_BT.expand_as(logprobs_BT))):
        check_finite(what, values_BT, is_trained_BT)
        values_BT = values_BT.detach()
        apart.append(masked(values_BT - values_BT[is_trained_BT].mean(), is_trained_BT))
    return apart[0] * apart[1]


def clip_cov(
    covariance_BT: Tensor,
    is_trained_BT: Tensor,
    draw: torch.Generator,
    *,
    share: float = 2e-4,
    low: float = 1.0,
    high: float = 5.0,
) -> Tensor:
    """Clip-Cov: a random ``share`` of the batch's tokens, one at least, among those whose covariance lies in
    [low, high]; give these no weight in the loss. [B, T] bool. Where fewer qualify, all of them."""
    candidates_N2 = (is_trained_BT & (covariance_BT >= low) & (covariance_BT <= high)).nonzero()
    count = max(int(share * int(is_trained_BT.sum())), 1)
    chosen = candidates_N2[torch.randperm(len(candidates_N2), generator=draw)[:count]]
    made_BT = torch.zeros_like(is_trained_BT)
    made_BT[chosen[:, 0], chosen[:, 1]] = True
    return made_BT


def top_share(values_BT: Tensor, is_trained_BT: Tensor, share: float) -> Tensor:
    """The ``share`` of the trained tokens with the largest values, one at least, [B, T] bool; ties by position.

    By covariance it chooses KL-Cov's tokens, 2e-4 of them (there only these carry a KL penalty); by entropy, and 0.2,
    the tokens at which reasoning forks, alone to be trained (arXiv:2506.01939)."""
    check_finite("value", values_BT, is_trained_BT)
    if not 0 < share <= 1:
        raise TrainError(f"a share must lie in (0, 1], got {share}")
    trained = int(is_trained_BT.sum())
    count = min(max(int(share * trained), 1), trained)
    flat = torch.where(is_trained_BT, values_BT, -torch.inf).flatten()
    made = torch.zeros_like(is_trained_BT).flatten()
    made[flat.argsort(descending=True, stable=True)[:count]] = True
    return made.view_as(is_trained_BT)


@dataclass(frozen=True)
class EntropyTarget:
    """Called as (coefficient, entropy) -> coefficient: adaptive entropy control (Skywork-OR1, arXiv:2505.22312).

    Below ``target`` nats the coefficient of the entropy bonus grows by ``step``, above it falls, never below 0;
    ``used`` is what goes into this step's loss: the coefficient while the entropy is at most ``target``, else 0."""

    target: float = 0.2
    step: float = 0.005

    def __call__(self, coefficient: float, entropy: float) -> float:
        return max(coefficient + (self.step if entropy < self.target else -self.step), 0.0)

    def used(self, coefficient: float, entropy: float) -> float:
        return coefficient if entropy <= self.target else 0.0
