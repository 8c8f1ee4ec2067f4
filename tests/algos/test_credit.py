"""Credit: hand cases, a slow loop, laws, and what is refused."""

from __future__ import annotations

import random

import pytest
import torch

from palestra.algos.credit import GroupCenter, GroupZScore, LeaveOneOut, MaxRL, checked, is_flat
from palestra.errors import TrainError
from tests.reference import slow

ALL = [GroupZScore(), GroupCenter(), LeaveOneOut(), MaxRL()]
SLOW = [lambda r: slow.zscore(r, 1, 1e-6), slow.center, slow.leave_one_out, slow.max_rl]


def test_by_hand():
    rewards_G = torch.tensor([1.0, 0.0, 0.0, 1.0])
    # mean 1/2; squared deviations sum to 4/4 = 1; variance 1/3 (ddof 1), 1/4 (ddof 0)
    assert GroupZScore(epsilon=0)(rewards_G).tolist() == pytest.approx([0.8660254, -0.8660254, -0.8660254, 0.8660254])
    assert GroupZScore(ddof=0, epsilon=0)(rewards_G).tolist() == pytest.approx([1.0, -1.0, -1.0, 1.0])
    # the epsilon is added to the deviation: 0.5 / (0.5 + 0.5)
    assert GroupZScore(ddof=0, epsilon=0.5)(rewards_G).tolist() == pytest.approx([0.5, -0.5, -0.5, 0.5])
    assert GroupCenter()(rewards_G).tolist() == [0.5, -0.5, -0.5, 0.5]
    # others of a 1: mean 1/3; others of a 0: mean 2/3
    assert LeaveOneOut()(rewards_G).tolist() == pytest.approx([2 / 3, -2 / 3, -2 / 3, 2 / 3])
    # (1 − 1/4) / (1/4) = 3; (0 − 1/4) / (1/4) = −1
    assert MaxRL()(torch.tensor([1.0, 0.0, 0.0, 0.0])).tolist() == [3.0, -1.0, -1.0, -1.0]


def test_the_defaults_are_those_of_the_literature():
    assert GroupZScore() == GroupZScore(ddof=1, epsilon=1e-6)


@pytest.mark.parametrize(("credit", "reference"), list(zip(ALL, SLOW, strict=True)), ids=lambda x: type(x).__name__)
def test_equals_a_slow_loop(credit, reference):
    draw = random.Random(0)
    for _ in range(100):
        rewards = [round(draw.random(), 2) for _ in range(draw.randint(2, 9))]
        assert credit(torch.tensor(rewards)).tolist() == pytest.approx(reference(rewards), abs=2e-5, rel=2e-5)


@pytest.mark.parametrize("credit", ALL, ids=repr)
@pytest.mark.parametrize("rewards", [[1.0], [0.0], [0.3], [0.0, 0.0], [1.0, 1.0, 1.0], [0.1] * 7])
def test_no_comparison_gives_exact_zeros(credit, rewards):
    assert credit(torch.tensor(rewards)).tolist() == [0.0] * len(rewards)


@pytest.mark.parametrize("credit", ALL, ids=repr)
def test_laws(credit):
    rewards_G = torch.rand(6, generator=torch.Generator().manual_seed(1))
    order_G = torch.tensor([3, 1, 5, 0, 2, 4])
    advantages_G = credit(rewards_G)
    assert float(advantages_G.sum()) == pytest.approx(0, abs=1e-5)
    torch.testing.assert_close(credit(rewards_G[order_G]), advantages_G[order_G])
    assert torch.equal(rewards_G.argsort(), advantages_G.argsort())
    assert credit(torch.tensor([1, 0])).dtype == torch.float32


def test_shifts_and_scales():
    rewards_G = torch.tensor([0.1, 0.7, 0.4])
    for credit in ALL[:3]:
        torch.testing.assert_close(credit(rewards_G + 5), credit(rewards_G), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(GroupZScore()(rewards_G * 10), GroupZScore()(rewards_G), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(MaxRL()(rewards_G * 10), MaxRL()(rewards_G))
    torch.testing.assert_close(LeaveOneOut()(rewards_G * 10), 10 * LeaveOneOut()(rewards_G))


@pytest.mark.parametrize("credit", ALL, ids=repr)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_reward_that_is_not_finite_is_named(credit, bad):
    with pytest.raises(TrainError, match=f"rollout 2 of its group is {bad}"):
        credit(torch.tensor([0.0, 1.0, bad, bad]))


@pytest.mark.parametrize("credit", ALL, ids=repr)
@pytest.mark.parametrize("shape", [(0,), (2, 2), ()])
def test_a_group_is_a_non_empty_list(credit, shape):
    with pytest.raises(TrainError, match="one number per rollout"):
        credit(torch.zeros(shape))


def test_max_rl_refuses_negative_rewards():
    with pytest.raises(TrainError, match=r"rewards >= 0, got -0\.5"):
        MaxRL()(torch.tensor([1.0, -0.5]))


def test_flat_looks_at_every_reward():
    assert is_flat(torch.tensor([0.5, 0.5, 0.5]))
    assert not is_flat(torch.tensor([0.5, 0.5, 0.4]))
    assert checked(torch.tensor([1, 2])).dtype == torch.float32
