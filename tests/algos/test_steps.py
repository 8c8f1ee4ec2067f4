"""Credit across a batch and below the rollout: normalisation, anchors, trees, the tracker, shaping."""

from __future__ import annotations

import math
import statistics

import pytest
import torch

from palestra.algos.credit import GroupCenter, GroupZScore
from palestra.algos.normalise import BatchNorm
from palestra.algos.shaping import by_entropy, by_position, by_sign, length_reward, tool_penalty
from palestra.algos.steps import (
    anchored,
    global_and_local,
    parent_relative,
    sibling_relative,
    tree_values,
    within,
)
from palestra.algos.tracker import Beta, Tracker
from palestra.errors import TrainError
from tests.algos.batches import GARBAGE, rows

NAN = float("nan")
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
VALUES = torch.tensor([[1.0, 1.0, 1.0], [-3.0, NAN, NAN], [NAN, NAN, NAN]])


def test_batch_norm_by_hand():
    # tokens 1, 1, 1, −3: mean 0, variance 3
    made = BatchNorm(epsilon=0)(VALUES, MASK)
    assert made.tolist() == [pytest.approx([3**-0.5] * 3), pytest.approx([-(3**0.5), 0, 0]), [0, 0, 0]]
    # sequences 1, −3: mean −1, variance 4
    made = BatchNorm("sequence", epsilon=0)(VALUES, MASK)
    assert made.tolist() == [[1.0] * 3, [-1.0, 0, 0], [0, 0, 0]]
    # ddof 1: variance 12/3 = 4 of four tokens; 8 of two sequences
    assert BatchNorm(ddof=1, epsilon=0)(VALUES, MASK)[0, 0].item() == pytest.approx(0.5)
    assert BatchNorm("sequence", ddof=1, epsilon=0)(VALUES, MASK)[0, 0].item() == pytest.approx(2 / math.sqrt(8))
    # ε stands under the root: 2/√(4 + 5)
    assert BatchNorm("sequence", epsilon=5.0)(VALUES, MASK)[0, 0].item() == pytest.approx(2 / 3)
    # without centring: 1/2
    made = BatchNorm("sequence", center=False, epsilon=0)(VALUES, MASK)
    assert made.tolist() == [[0.5] * 3, [-1.5, 0, 0], [0, 0, 0]]
    assert BatchNorm() == BatchNorm("token", per_task=False, center=True, ddof=0, epsilon=1e-8)
    # one per sequence is one for each of its tokens
    torch.testing.assert_close(BatchNorm()(torch.tensor([[1.0], [-3.0], [NAN]]), MASK), BatchNorm()(VALUES, MASK))


def test_batch_norm_equals_statistics():
    draw = torch.Generator().manual_seed(0)
    for _ in range(10):
        mask = torch.rand(4, 6, generator=draw) < 0.6
        mask[0, :2] = True
        values = torch.where(mask, torch.randn(4, 6, generator=draw, dtype=torch.float64), GARBAGE[0].double())
        present = [x for row in rows(values, mask) for x in row if x is not None]
        mean, std = statistics.fmean(present), statistics.pstdev(present)
        want = [[0.0 if x is None else (x - mean) / std for x in row] for row in rows(values, mask)]
        assert BatchNorm(epsilon=0)(values, mask).tolist() == [pytest.approx(row) for row in want]


def test_each_task_by_itself():
    advantages = torch.tensor([[1.0], [-1.0], [10.0], [30.0], [5.0]])
    mask, tasks = torch.ones(5, 1, dtype=torch.bool), torch.tensor([7, 7, 2, 2, 9])
    made = BatchNorm(per_task=True, epsilon=0)(advantages, mask, tasks)
    # 10 and 30: mean 20, deviation 10; a task with one value compares with nothing
    assert made.flatten().tolist() == pytest.approx([1, -1, -1, 1, 0])
    assert (BatchNorm(per_task=True).needs, BatchNorm().needs) == ({"tasks_B"}, frozenset())
    with pytest.raises(TrainError, match=r"per_task=True.* needs tasks_B"):
        BatchNorm(per_task=True)(advantages, mask)


def test_batch_norm_without_a_comparison():
    mask = torch.tensor([[True, True], [False, True]])
    equal = torch.tensor([[0.1, 0.1], [NAN, 0.1]])
    for measure in ("token", "sequence"):
        assert BatchNorm(measure)(equal, mask).tolist() == [[0, 0], [0, 0]]
        assert BatchNorm(measure, center=False)(equal, mask).tolist() == [
            pytest.approx([0.1, 0.1]),
            pytest.approx([0, 0.1]),
        ]
    assert BatchNorm()(equal, mask & ~mask).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(TrainError, match="advantage of sequence 1, token 1 is nan"):
        BatchNorm()(torch.tensor([[0.1, 0.1], [0.0, NAN]]), mask)


def test_within_is_the_credit_of_each_group():
    rewards, groups = torch.tensor([1.0, 4.0, 3.0, 0.0, 9.0]), torch.tensor([5, 2, 5, 2, 8])
    # (1, 3): mean 2; (4, 0): mean 2; alone: 0
    assert within(rewards, groups, GroupCenter()).tolist() == [-1.0, 2.0, 1.0, -2.0, 0.0]
    with pytest.raises(TrainError, match="one per reward"):
        within(rewards, groups[:3], GroupCenter())
    with pytest.raises(TrainError, match="reward 1 is inf"):
        within(torch.tensor([0.0, math.inf]), groups[:2], GroupCenter())


def test_anchored_by_hand():
    episode, returns = torch.tensor([0.5, 0.5, -0.5]), torch.tensor([1.0, 0.8, 0.0])
    anchors = torch.tensor([0, 1, 0])
    # from state 0: 1 and 0: ±½; state 1 was seen once
    made = anchored(episode, returns, anchors, weight=0.5, credit=GroupCenter())
    assert made.tolist() == [0.75, 0.5, -0.75]
    torch.testing.assert_close(anchored(episode, returns, anchors), episode + within(returns, anchors, GroupZScore()))
    with pytest.raises(TrainError, match="3 numbers, got shape"):
        anchored(episode[:2], returns, anchors)


#      0
#    1   2        leaves: 3 (r 1), 4 (r 0), 2 (r ½), under 1: ½
#  3  4
PARENTS = torch.tensor([-1, 0, 0, 1, 1])
LEAVES = torch.tensor([NAN, NAN, 0.5, 1.0, 0.0])


def test_tree_by_hand():
    values, leaves = tree_values(PARENTS, LEAVES)
    assert values.tolist() == pytest.approx([0.5, 0.5, 0.5, 1.0, 0.0])
    assert leaves.tolist() == [3, 2, 1, 1, 1]
    values, _ = tree_values(PARENTS, torch.tensor([NAN, NAN, 2.0, 1.0, 0.0]))
    # root (2 + 1 + 0)/3 = 1; node 1: ½
    assert values.tolist() == [1.0, 0.5, 2.0, 1.0, 0.0]
    assert parent_relative(values, PARENTS).tolist() == [0.0, -0.5, 1.0, 0.5, -0.5]
    assert sibling_relative(values, PARENTS).tolist() == [0.0, -1.5, 1.5, 1.0, -1.0]
    # node 1: (−½ − ½)/√2; node 3: (0 + ½)/1; node 2: 1 + 1
    made = global_and_local(values, leaves, PARENTS)
    assert made.tolist() == pytest.approx([0.0, -(2**-0.5), 2.0, 0.5, -1.5])
    # three siblings: 3 against the mean of 0 and 1
    assert sibling_relative(torch.tensor([9.0, 3.0, 0.0, 1.0]), torch.tensor([-1, 0, 0, 0]))[1].item() == 2.5


def test_tree_laws():
    values, _ = tree_values(PARENTS, LEAVES)
    steps = parent_relative(values, PARENTS)
    assert float(steps[1] + steps[3]) == pytest.approx(1.0 - float(values[0]))
    # an only child, and a second root, compare with nothing
    forest = torch.tensor([-1, 0, -1])
    assert sibling_relative(torch.tensor([1.0, 2.0, 3.0]), forest).tolist() == [0.0, 0.0, 0.0]
    assert parent_relative(torch.tensor([1.0, 2.0, 3.0]), forest).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(("parents", "node"), [([-1, 1], 1), ([0], 0), ([-1, -2], 1), ([-1, 2, 0], 1)])
def test_a_tree_is_refused_that_is_none(parents, node):
    with pytest.raises(TrainError, match=f"node {node} has parent"):
        tree_values(torch.tensor(parents), torch.zeros(len(parents)))


def test_a_leaf_without_a_reward_is_named():
    with pytest.raises(TrainError, match="reward of node 4 is nan"):
        tree_values(PARENTS, torch.tensor([0.0, 0.0, 0.0, 0.0, NAN]))


def test_tracker_by_hand():
    tracker = Tracker(half_life=0.1, low=0.5, high=0.8)
    # KL 0.05: 2^−½ = 0.70711 of the past is kept
    state, advantage = tracker(Beta(3.0, 1.0), (1.0, 0.05))
    assert advantage == pytest.approx(0.25)
    assert (state.successes, state.failures) == pytest.approx((3 * 0.5**0.5 + 1, 0.5**0.5))
    # no KL: at most 0.8; a large one: at least 0.5
    assert tracker(Beta(3.0, 1.0), (0.25, 0.0))[0] == Beta(pytest.approx(2.65), pytest.approx(1.55))
    assert tracker(Beta(3.0, 1.0), (0.0, 9.0)) == (Beta(1.5, 1.5), -0.75)
    assert Tracker() == Tracker(half_life=0.06, low=0.875, high=0.96)


def test_tracker_starts_and_learns():
    tracker = Tracker()
    state = tracker.start(0.25)
    assert (state.successes, state.failures) == pytest.approx((2.0, 6.0))
    assert (tracker.start(0.0).successes, tracker.start(1.0).failures) == pytest.approx((8e-3, 8e-3))
    for step in range(400):
        state, _ = tracker(state, (float(step % 4 != 0), 0.0))
    assert state.mean == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize("seen", [(1.5, 0.0), (-0.1, 0.0), (NAN, 0.0), (1.0, -0.1), (1.0, NAN)])
def test_tracker_refuses(seen):
    with pytest.raises(TrainError, match="must"):
        Tracker()(Beta(1.0, 1.0), seen)
    with pytest.raises(TrainError, match="success rate"):
        Tracker().start(1.1)


def test_shaping_by_hand():
    advantages, entropy = torch.tensor([[1.0, -1.0, 0.0, NAN]]), torch.tensor([[1.0, 5.0, 3.0, NAN]])
    mask = torch.tensor([[True, True, True, False]])
    # min(0.4·1, ½) = 0.4; min(2, ½) = ½; min(…, 0) = 0
    assert by_entropy(advantages, entropy, mask).tolist() == [pytest.approx([1.4, -0.5, 0.0, 0.0])]
    assert by_entropy(advantages, entropy, mask, alpha=0.1, kappa=10).tolist() == [pytest.approx([1.1, -0.9, 0.0, 0.0])]
    leaf = torch.tensor([[1.0]], requires_grad=True)
    assert not by_entropy(torch.ones(1, 1), leaf, torch.ones(1, 1, dtype=torch.bool)).requires_grad
    assert by_sign(torch.tensor([2.0, 0.0, -2.0]), positive=0.1, negative=3.0).tolist() == pytest.approx(
        [0.2, 0.0, -6.0]
    )
    assert by_sign(torch.tensor([2.0, -2.0])).tolist() == [2.0, -2.0]


def test_by_position_by_hand():
    ones = torch.where(MASK, 2.0, NAN)
    made = by_position(ones, torch.tensor([[True, True, True], [True, False, False], [False] * 3]), first=1.0, last=0.0)
    assert made.tolist() == [[2.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0] * 3]
    gap = by_position(torch.ones(1, 4), torch.tensor([[False, True, False, True]]), first=0.5, last=2.0)
    assert gap.tolist() == [[0.0, 0.5, 0.0, 2.0]]


def test_penalties_by_hand():
    lengths, right = torch.tensor([10, 20, 30, 10]), torch.tensor([True, True, True, False])
    # ½ − 0, ½ − ½, ½ − 1; a short wrong answer earns nothing
    assert length_reward(lengths, right).tolist() == [0.5, 0.0, -0.5, 0.0]
    assert length_reward(lengths, ~right).tolist() == [0.0, 0.0, -0.5, 0.5]
    assert length_reward(torch.tensor([7, 7]), torch.tensor([True, False])).tolist() == [0.0, 0.0]
    assert tool_penalty(torch.tensor([0, 1, 9]), each=0.1, most=0.3).tolist() == pytest.approx([0.0, -0.1, -0.3])
    for each, most in ((-0.1, 1.0), (0.1, -1.0)):
        with pytest.raises(TrainError, match="price"):
            tool_penalty(torch.tensor([1]), each=each, most=most)
    with pytest.raises(TrainError, match="length of rollout 1 is inf"):
        length_reward(torch.tensor([1.0, math.inf]), torch.tensor([True, True]))
