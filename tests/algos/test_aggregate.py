"""Aggregation: hand cases, the slow loop, and no denominator that depends on how a batch is cut."""

from __future__ import annotations

import pytest
import torch

from palestra.algos.aggregate import PerMaxLen, SequenceMean, TokenMean
from palestra.errors import TrainError
from tests.algos.batches import rows
from tests.reference import slow

AGGREGATES = [
    (TokenMean(), slow.token_mean),
    (SequenceMean(), slow.sequence_mean),
    (PerMaxLen(10), lambda losses: slow.per_max_len(losses, 10)),
]
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        # four trained tokens: a quarter each
        (TokenMean(), [[1 / 4, 1 / 4, 1 / 4], [1 / 4, 0, 0], [0, 0, 0]]),
        # two sequences with a trained token: ½ each, shared among 3 tokens and among 1
        (SequenceMean(), [[1 / 6, 1 / 6, 1 / 6], [1 / 2, 0, 0], [0, 0, 0]]),
        # two sequences × 10 tokens: a twentieth each, however short the sequence
        (PerMaxLen(10), [[1 / 20, 1 / 20, 1 / 20], [1 / 20, 0, 0], [0, 0, 0]]),
    ],
    ids=repr,
)
def test_by_hand(aggregate, expected):
    torch.testing.assert_close(aggregate(MASK), torch.tensor(expected))


@pytest.mark.parametrize(("aggregate", "reference"), AGGREGATES, ids=["token", "sequence", "longest"])
def test_equals_a_slow_loop(aggregate, reference):
    draw = torch.Generator().manual_seed(1)
    for _ in range(20):
        mask_BT = torch.rand(6, 9, generator=draw) < 0.5
        mask_BT[0, 0] = True
        losses_BT = torch.randn(6, 9, generator=draw, dtype=torch.float64)
        got = (aggregate(mask_BT).double() * losses_BT).sum()
        assert got.item() == pytest.approx(reference(rows(losses_BT, mask_BT)), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("aggregate", [a for a, _ in AGGREGATES], ids=repr)
def test_padding_and_masked_rows_change_nothing(aggregate):
    wide = torch.zeros(5, 8, dtype=torch.bool)
    wide[:3, :3] = MASK
    torch.testing.assert_close(aggregate(wide)[:3, :3], aggregate(MASK))
    assert aggregate(wide)[3:].sum() == 0


def test_weights_of_means_sum_to_one():
    for aggregate in (TokenMean(), SequenceMean()):
        assert aggregate(MASK).sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("aggregate", [a for a, _ in AGGREGATES], ids=repr)
def test_a_batch_without_a_trained_token_has_no_mean(aggregate):
    with pytest.raises(TrainError, match="no token of the batch"):
        aggregate(torch.zeros(2, 3, dtype=torch.bool))
