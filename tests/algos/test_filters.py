"""Which groups carry a signal, and the name of why not."""

from __future__ import annotations

import pytest
import torch

from palestra.algos.filters import drop_flat, flat_reason
from palestra.errors import TrainError


@pytest.mark.parametrize(
    ("rewards", "reason"),
    [
        ([1.0, 1.0, 1.0], "all_right"),
        ([0.0, 0.0], "all_wrong"),
        ([0.5, 0.5], "all_equal"),
        ([1.0], "alone"),
        ([0.0, 1.0], None),
        ([0.5, 0.5000001], None),
    ],
)
def test_reason(rewards, reason):
    assert flat_reason(torch.tensor(rewards)) == reason


def test_every_group_is_kept_or_counted():
    groups = [torch.tensor(r) for r in ([1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.2, 0.2], [1.0], [0.0, 0.3])]
    kept, dropped = drop_flat(groups)
    assert kept == [0, 5]
    assert dropped == {"all_right": 1, "all_wrong": 1, "all_equal": 1, "alone": 1}
    assert len(kept) + sum(dropped.values()) == len(groups)


def test_a_reward_that_is_none_is_refused():
    with pytest.raises(TrainError, match="rollout 1 of its group is nan"):
        flat_reason(torch.tensor([1.0, float("nan")]))
    with pytest.raises(TrainError, match="one number per rollout"):
        flat_reason(torch.tensor([]))
