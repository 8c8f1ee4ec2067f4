"""Aggregation: which weight each trained token has in the batch's loss, Σ weights·losses.

Each is a frozen function (is_trained_BT, ids) -> weights_BT of a *whole* batch. Computed once and then sliced, the
weights make micro-batches sum to the batch exactly, whatever their number; no denominator ever depends on how the batch
was cut. TrainError where no token of the batch is trained: there is no mean of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from palestra.algos.returns import spans
from palestra.errors import TrainError


@dataclass(frozen=True)
class Ids:
    """Which prompt and which rollout each sequence belongs to, [B] long; None where the batch does not hold it."""

    prompts_B: Tensor | None = None
    rollouts_B: Tensor | None = None


NO_IDS = Ids()


class Aggregate(Protocol):
    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor: ...


def _trained_lengths(is_trained_BT: Tensor) -> Tensor:
    """Trained tokens of each sequence, [B, 1]; TrainError where the whole batch has none."""
    lengths_B1 = is_trained_BT.sum(-1, keepdim=True)
    if not bool(lengths_B1.any()):
        raise TrainError(
            f"no token of the batch {tuple(is_trained_BT.shape)} is trained, so its loss has no denominator; "
            "leave the step out, and look at why every sequence was masked"
        )
    return lengths_B1


@dataclass(frozen=True)
class TokenMean:
    """w = 1 / (trained tokens of the batch): every token counts the same, so long sequences count more (DAPO)."""

    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor:
        return is_trained_BT.float() / _trained_lengths(is_trained_BT).sum()


@dataclass(frozen=True)
class SequenceMean:
    """w = 1 / (sequences with a trained token × trained tokens of this sequence): the mean of token means (GRPO)."""

    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor:
        lengths_B1 = _trained_lengths(is_trained_BT)
        sequences = (lengths_B1 > 0).sum()
        return is_trained_BT.float() / (lengths_B1.clamp_min(1) * sequences)


@dataclass(frozen=True)
class PerMaxLen:
    """w = 1 / (sequences with a trained token × ``tokens``): a sum over a constant (Dr. GRPO, arXiv:2503.20783).

    tokens  the longest completion that the run allows, or any constant k that is to stand for a length; shorter ones
            are not weighed up
    """

    tokens: int

    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor:
        sequences = (_trained_lengths(is_trained_BT) > 0).sum()
        return is_trained_BT.float() / (sequences * self.tokens)


@dataclass(frozen=True)
class PerTurn:
    """w = 1 / (turns of the batch × trained tokens of this turn): every turn counts the same, however long it is, and
    long rollouts count by their turns. A turn is a run of trained tokens (``returns.spans``)."""

    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor:
        _trained_lengths(is_trained_BT)
        turns_BT = spans(is_trained_BT)
        rows_B1 = torch.arange(len(turns_BT))[:, None] * (turns_BT.shape[1] + 1)
        return _mean_of_means(is_trained_BT, turns_BT + rows_B1)


@dataclass(frozen=True)
class PerPrompt:
    """w = 1 / (prompts with a trained token × trained tokens of this prompt's sequences): every prompt counts the same,
    its tokens likewise. needs prompts_B."""

    needs: ClassVar[frozenset[str]] = frozenset({"prompts_B"})

    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor:
        _trained_lengths(is_trained_BT)
        return _mean_of_means(is_trained_BT, _known(ids.prompts_B, "prompts_B", self, is_trained_BT))


@dataclass(frozen=True)
class PerRollout:
    """w = 1 / (rollouts with a trained token × trained tokens of this rollout's sequences): a rollout that became many
    rows (one per turn) counts as one. needs rollouts_B."""

    needs: ClassVar[frozenset[str]] = frozenset({"rollouts_B"})

    def __call__(self, is_trained_BT: Tensor, ids: Ids = NO_IDS) -> Tensor:
        _trained_lengths(is_trained_BT)
        return _mean_of_means(is_trained_BT, _known(ids.rollouts_B, "rollouts_B", self, is_trained_BT))


def _known(ids_B: Tensor | None, name: str, who: object, is_trained_BT: Tensor) -> Tensor:
    if ids_B is None or ids_B.shape != is_trained_BT.shape[:1]:
        got = "nothing" if ids_B is None else f"shape {tuple(ids_B.shape)}"
        raise TrainError(f"{who!r} needs {name}, one number for each of {len(is_trained_BT)} sequences; got {got}")
    return ids_B[:, None].expand_as(is_trained_BT)


def _mean_of_means(is_trained_BT: Tensor, units_BT: Tensor) -> Tensor:
    """1 / (units × trained tokens of the token's unit), units told apart by their numbers."""
    _, units_N, counts_U = torch.unique(units_BT[is_trained_BT], return_inverse=True, return_counts=True)
    weights_N = 1 / (counts_U[units_N] * len(counts_U))
    return is_trained_BT.float().masked_scatter(is_trained_BT, weights_N.float())
