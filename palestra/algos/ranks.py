"""Credit by order alone: ranks, tournaments, and a redistribution among those that pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from palestra.algos.credit import NO_FACTS, Facts, checked
from palestra.algos.numbers import check_vector
from palestra.errors import TrainError


@dataclass(frozen=True)
class Rank:
    """A_i = rank_i/(G − 1) − ½, ranks 0 … G − 1 from the worst, ties sharing their mean rank; in [−½, ½], sum 0.

    Only the order of the rewards counts, not by how much they differ. A group of one, or all equal: zeros."""

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        if len(rewards_G) == 1:
            return torch.zeros_like(rewards_G)
        below_G = (rewards_G[:, None] > rewards_G).sum(-1)
        equal_G = (rewards_G[:, None] == rewards_G).sum(-1) - 1
        return (below_G + equal_G / 2) / (len(rewards_G) - 1) - 0.5


@dataclass(frozen=True)
class Tournament:
    """A_i = mean over rivals j of the share of comparisons that i won against j, − ½: for judges that compare pairs
    (as in ArenaRL, arXiv:2601.06487). Sums to 0, as what i wins j loses. A group of one: zero.

    The rewards are not read. TrainError unless wins_ij + wins_ji = 1 for every pair: each was judged, a tie as ½."""

    needs: ClassVar[frozenset[str]] = frozenset({"wins_GG"})

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        size = len(rewards_G)
        wins_GG = facts.need("wins_GG", self).to(rewards_G.dtype)
        if wins_GG.shape != (size, size):
            raise TrainError(f"wins_GG must be {size} × {size}, got shape {tuple(wins_GG.shape)}")
        is_self_GG = torch.eye(size, dtype=torch.bool)
        is_odd_GG = ~is_self_GG & ~torch.isclose(wins_GG + wins_GG.T, torch.ones(()).to(wins_GG))
        if bool(is_odd_GG.any()):
            one, other = is_odd_GG.nonzero()[0].tolist()
            raise TrainError(f"rollouts {one} and {other}: their shares of wins must add up to 1; judge every pair")
        if size == 1:
            return torch.zeros_like(rewards_G)
        return wins_GG.masked_fill(is_self_GG, 0.0).sum(-1) / (size - 1) - 0.5


def redistribute(advantages_G: Tensor, quality_G: Tensor, is_passing_G: Tensor) -> Tensor:
    """Share the passing rollouts' total advantage among them by quality: A_i = (Σ_pass A)·q_i / Σ_pass q, [G].

    The sum stays, so that the group's balance of push and pull does; failures keep theirs. quality_G >= 0, read for
    passing rollouts alone (say, brevity). With no passing rollout, or only qualities of 0: unchanged."""
    advantages_G = check_vector("advantage of rollout", advantages_G)
    quality_G = torch.where(is_passing_G, quality_G, 0.0)
    check_vector("quality of rollout", quality_G, len(advantages_G))
    if bool((quality_G < 0).any()):
        raise TrainError(f"qualities must be >= 0, got {float(quality_G.min())}")
    if float(quality_G.sum()) == 0:
        return advantages_G
    total = advantages_G[is_passing_G].sum()
    return torch.where(is_passing_G, total * quality_G / quality_G.sum(), advantages_G)
