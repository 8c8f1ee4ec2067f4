"""Aggregation: which weight each trained token has in the batch's loss, Σ weights·losses.

Each is a frozen function is_trained_BT -> weights_BT of a *whole* batch. Computed once and then sliced, the weights
make micro-batches sum to the batch exactly, whatever their number; no denominator ever depends on how the batch was
cut. TrainError where no token of the batch is trained: there is no mean of nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from palestra.errors import TrainError


class Aggregate(Protocol):
    def __call__(self, is_trained_BT: Tensor) -> Tensor: ...


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

    def __call__(self, is_trained_BT: Tensor) -> Tensor:
        return is_trained_BT.float() / _trained_lengths(is_trained_BT).sum()


@dataclass(frozen=True)
class SequenceMean:
    """w = 1 / (sequences with a trained token × trained tokens of this sequence): the mean of token means (GRPO)."""

    def __call__(self, is_trained_BT: Tensor) -> Tensor:
        lengths_B1 = _trained_lengths(is_trained_BT)
        sequences = (lengths_B1 > 0).sum()
        return is_trained_BT.float() / (lengths_B1.clamp_min(1) * sequences)


@dataclass(frozen=True)
class PerMaxLen:
    """w = 1 / (sequences with a trained token × ``tokens``): a sum over a constant (Dr. GRPO, arXiv:2503.20783).

    tokens  the longest completion that the run allows; shorter ones are not weighed up
    """

    tokens: int

    def __call__(self, is_trained_BT: Tensor) -> Tensor:
        sequences = (_trained_lengths(is_trained_BT) > 0).sum()
        return is_trained_BT.float() / (sequences * self.tokens)
