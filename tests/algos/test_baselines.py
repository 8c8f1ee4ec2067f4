"""Other baselines and scales of a group: hand cases, definitions by enumeration, laws, what is refused."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
import torch

from palestra.algos.baselines import (
    Greedy,
    LengthWeighted,
    Median,
    MinimumVariance,
    PassAtK,
    Quantile,
    lower_quantile,
)
from palestra.algos.credit import Facts, GroupZScore
from palestra.algos.ranks import Rank, Tournament, redistribute
from palestra.errors import TrainError

FLAT = [LengthWeighted(), MinimumVariance(), Median(), Median(scaled=False), Quantile(), PassAtK(1), Rank()]


def facts(size: int) -> Facts:
    return Facts(lengths_G=torch.arange(1, size + 1), log_weights_G=torch.linspace(-1, 1, size))


def test_length_weighted_by_hand():
    # (1·1 + 3·0)/4 = ¼
    made = LengthWeighted()(torch.tensor([1.0, 0.0]), Facts(lengths_G=torch.tensor([1, 3])))
    assert made.tolist() == [0.75, -0.25]
    assert made.dtype == torch.float32


def test_minimum_variance_by_hand():
    # w² = 4, 1; l = 1, 2: (4·1·1 + 1·2·0)/6 = ⅔
    known = Facts(lengths_G=torch.tensor([1, 2]), log_weights_G=torch.tensor([math.log(2), 0.0]))
    assert MinimumVariance()(torch.tensor([1.0, 0.0]), known).tolist() == pytest.approx([1 / 3, -2 / 3])
    # a common factor of the weights cancels, and does not overflow
    huge = Facts(lengths_G=torch.tensor([1, 2]), log_weights_G=torch.tensor([math.log(2) + 500, 500.0]))
    assert MinimumVariance()(torch.tensor([1.0, 0.0]), huge).tolist() == pytest.approx([1 / 3, -2 / 3], rel=1e-4)


def test_minimum_variance_is_that():
    """Among all baselines b, Σ w²·l·(r − b)² is least at ours."""
    rewards_G, known = torch.tensor([1.0, 0.2, 0.5, 0.0]), facts(4)
    ours = float((rewards_G - MinimumVariance()(rewards_G, known))[0])
    weights = [math.exp(2 * w) * n for w, n in zip(known.log_weights_G.tolist(), [1, 2, 3, 4], strict=True)]
    spread = lambda b: math.fsum(w * (r - b) ** 2 for w, r in zip(weights, rewards_G.tolist(), strict=True))  # noqa: E731
    assert spread(ours) < min(spread(ours - 0.01), spread(ours + 0.01))
    same = Facts(lengths_G=torch.arange(1, 5), log_weights_G=torch.zeros(4))
    torch.testing.assert_close(MinimumVariance()(rewards_G, same), LengthWeighted()(rewards_G, same))


def test_greedy_by_hand():
    known = Facts(greedy_reward=torch.tensor(0.75))
    assert Greedy()(torch.tensor([1.0, 0.0]), known).tolist() == [0.25, -0.75]
    assert Greedy()(torch.tensor([1.0]), known).tolist() == [0.25]
    with pytest.raises(TrainError, match="is nan"):
        Greedy()(torch.tensor([1.0]), Facts(greedy_reward=torch.tensor(float("nan"))))


def test_median_by_hand():
    rewards_G = torch.tensor([0.0, 1.0, 5.0])
    assert Median(scaled=False)(rewards_G).tolist() == [-1.0, 0.0, 4.0]
    # √((1 + 0 + 16)/2) = 2.9155
    assert Median(epsilon=0)(rewards_G).tolist() == pytest.approx([-0.342997, 0.0, 1.371989], rel=1e-5)
    assert Median(epsilon=1.0)(rewards_G).tolist() == pytest.approx([-0.255396, 0.0, 1.021585], rel=1e-5)
    # an even number: the mean of the middle two, 1.5
    assert Median(scaled=False)(torch.tensor([0.0, 1.0, 2.0, 9.0])).tolist() == [-1.5, -0.5, 0.5, 7.5]
    assert Median() == Median(scaled=True, epsilon=1e-6)


@pytest.mark.parametrize(
    ("rewards", "share", "expected"),
    [
        ([0, 0, 0, 1, 1], 0.6, 0),
        ([0, 0, 0, 1, 1], 0.61, 1),
        ([3, 1, 2], 1.0, 3),
        ([3, 1, 2], 0.01, 1),
        ([5, 4], 0.5, 4),
    ],
)
def test_lower_quantile(rewards, share, expected):
    assert lower_quantile(torch.tensor(rewards), share).item() == expected


def test_quantile_by_hand():
    # one success of five, below 1 − 0.4: baseline 0, only the success counts; std of (0,0,0,0,1) = √0.2
    made = Quantile(epsilon=0)(torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])).tolist()
    assert made == pytest.approx([0, 0, 1 / math.sqrt(0.2), 0, 0])
    # four of five: baseline 1, only the failure counts
    made = Quantile(epsilon=1.0)(torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])).tolist()
    assert made == pytest.approx([0, 0, -1 / (math.sqrt(0.2) + 1), 0, 0])
    assert Quantile() == Quantile(0.4, 1e-6)
    for share in (0.0, 1.1):
        with pytest.raises(TrainError, match="quantile"):
            Quantile(share)(torch.tensor([1.0, 0.0]))


@pytest.mark.parametrize(("size", "right", "k"), [(4, 1, 2), (6, 2, 3), (5, 3, 1), (5, 1, 4)])
def test_pass_at_k_is_the_expectation_over_subsets(size, right, k):
    """Every subset of k scores 1 when it holds a right one; z-score the subsets; a rollout gets its subsets' mean."""
    rewards = [1.0] * right + [0.0] * (size - right)
    subsets = list(itertools.combinations(range(size), k))
    scores = [max(rewards[i] for i in subset) for subset in subsets]
    mean, deviation = statistics.fmean(scores), statistics.pstdev(scores)
    want = [
        statistics.fmean(
            (score - mean) / deviation for subset, score in zip(subsets, scores, strict=True) if i in subset
        )
        for i in range(size)
    ]
    made = PassAtK(k)(torch.tensor(rewards))
    assert made.tolist() == pytest.approx(want, abs=1e-6)
    assert made.dtype == torch.float32


def test_pass_at_k_at_its_ends():
    torch.testing.assert_close(
        PassAtK(1)(torch.tensor([1.0, 0.0, 0.0])), GroupZScore(ddof=0, epsilon=0)(torch.tensor([1.0, 0.0, 0.0]))
    )
    # with one wrong of three every pair holds a right one: solved, no signal
    assert PassAtK(2)(torch.tensor([1.0, 1.0, 0.0])).tolist() == [0.0] * 3
    # a partial score is wrong, unless the threshold says otherwise
    assert PassAtK(1)(torch.tensor([0.9, 0.0])).tolist() == [0.0, 0.0]
    assert PassAtK(1, threshold=0.9)(torch.tensor([0.9, 0.0])).tolist() == pytest.approx([1.0, -1.0])
    for k in (0, 3):
        with pytest.raises(TrainError, match=f"k = {k} of 2"):
            PassAtK(k)(torch.tensor([1.0, 0.0]))


@pytest.mark.parametrize("credit", FLAT, ids=repr)
@pytest.mark.parametrize("rewards", [[1.0], [0.3], [0.0, 0.0], [0.1] * 7])
def test_no_comparison_gives_exact_zeros(credit, rewards):
    assert credit(torch.tensor(rewards), facts(len(rewards))).tolist() == [0.0] * len(rewards)


@pytest.mark.parametrize("credit", [*FLAT, Greedy(), Tournament()], ids=repr)
def test_bad_rewards_are_named(credit):
    with pytest.raises(TrainError, match="rollout 1 of its group is nan"):
        credit(torch.tensor([0.0, float("nan")]), facts(2))
    with pytest.raises(TrainError, match="one number per rollout"):
        credit(torch.zeros(0), facts(1))


@pytest.mark.parametrize("credit", [LengthWeighted(), MinimumVariance(), Greedy(), Tournament()], ids=repr)
def test_a_missing_fact_is_named_with_those_that_are_there(credit):
    missing = sorted(credit.needs)[-1]
    held = "lengths_G" if missing != "lengths_G" else "log_weights_G"
    known = Facts(**{held: torch.ones(2)})
    with pytest.raises(TrainError, match=rf"{type(credit).__name__}\(\) needs {missing}.*holds: {held}$"):
        credit(torch.tensor([1.0, 0.0]), known)
    with pytest.raises(TrainError, match="holds: rewards alone"):
        credit(torch.tensor([1.0, 0.0]))


@pytest.mark.parametrize("lengths", [[0, 0], [-1, 2]])
def test_weights_of_a_baseline_make_a_mean(lengths):
    with pytest.raises(TrainError, match=">= 0 and not all 0"):
        LengthWeighted()(torch.tensor([1.0, 0.0]), Facts(lengths_G=torch.tensor(lengths)))
    with pytest.raises(TrainError, match="2 numbers, got shape"):
        LengthWeighted()(torch.tensor([1.0, 0.0]), Facts(lengths_G=torch.ones(3)))


def test_rank_by_hand():
    # ranks 0, 2, 2, 2 → 2 shared by three (1 + 2 + 3)/3; /3 − ½
    assert Rank()(torch.tensor([0.0, 7.0, 7.0, 7.0])).tolist() == pytest.approx([-0.5, 1 / 6, 1 / 6, 1 / 6])
    assert Rank()(torch.tensor([0.2, 0.9, 0.1])).tolist() == pytest.approx([0.0, 0.5, -0.5])
    draw = random.Random(0)
    for _ in range(30):
        rewards = torch.tensor([draw.choice([0.0, 0.2, 0.5, 1.0]) for _ in range(6)])
        assert float(Rank()(rewards).sum()) == pytest.approx(0, abs=1e-6)
        torch.testing.assert_close(Rank()(rewards.exp()), Rank()(rewards))


def test_tournament_by_hand():
    wins = torch.tensor([[9.0, 1.0, 0.5], [0.0, 9.0, 1.0], [0.5, 0.0, 9.0]])
    # (1 + ½)/2 − ½ = ¼;  (0 + 1)/2 − ½ = 0;  (½ + 0)/2 − ½ = −¼
    assert Tournament()(torch.zeros(3), Facts(wins_GG=wins)).tolist() == [0.25, 0.0, -0.25]
    assert Tournament()(torch.zeros(1), Facts(wins_GG=torch.zeros(1, 1))).tolist() == [0.0]
    wins[1, 2] = 0.3
    with pytest.raises(TrainError, match="rollouts 1 and 2: their shares"):
        Tournament()(torch.zeros(3), Facts(wins_GG=wins))
    with pytest.raises(TrainError, match="2 × 2, got shape"):
        Tournament()(torch.zeros(2), Facts(wins_GG=wins))


def test_redistribution_keeps_the_sum():
    advantages = torch.tensor([0.5, 0.5, -1.0])
    passing = torch.tensor([True, True, False])
    # total 1 shared 3 : 1
    made = redistribute(advantages, torch.tensor([3.0, 1.0, float("nan")]), passing)
    assert made.tolist() == [0.75, 0.25, -1.0]
    for same in (torch.zeros(3), torch.tensor([0.0, 0.0, 5.0])):
        assert redistribute(advantages, same, passing).tolist() == advantages.tolist()
    assert redistribute(advantages, torch.ones(3), ~passing & passing).tolist() == advantages.tolist()
    with pytest.raises(TrainError, match="qualities must be >= 0"):
        redistribute(advantages, torch.tensor([-1.0, 1.0, 0.0]), passing)
    with pytest.raises(TrainError, match="advantage of rollout 0 is inf"):
        redistribute(torch.tensor([math.inf, 0.0, 0.0]), torch.ones(3), passing)
    with pytest.raises(TrainError, match="quality of rollout 1 is nan"):
        redistribute(advantages, torch.tensor([1.0, math.nan, 0.0]), passing)
