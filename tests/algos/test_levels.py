"""Sequences, turns, prompts and rollouts as units of ratio, surrogate and mean; KL beside the token's."""

from __future__ import annotations

import math

import pytest
import torch

from palestra.algos.aggregate import Ids, PerPrompt, PerRollout, PerTurn, SequenceMean
from palestra.algos.credit import GroupCenter
from palestra.algos.kl import StraightThrough, exact, exact_forward, k1, k2, k3, of_sequence, penalised
from palestra.algos.objective import Recipe
from palestra.algos.ratio import product_ratio, sequence_ratio, token_ratio, turn_ratio
from palestra.algos.surrogate import Cispo, Clip, GeometricMean, Regression, Signed, Unclipped
from palestra.errors import TrainError
from tests.algos.batches import batch, gradient, loss, rows
from tests.reference import slow_sums as slow

NAN = float("nan")
GAP = torch.tensor([[True, True, False, True]])


@pytest.mark.parametrize(
    ("ratio", "expected"),
    # log ratios 0.1, 0.3, –, 0.5: sum 0.9; turns: 0.2 and 0.5
    [(product_ratio, [0.9, 0.9, 0.0, 0.9]), (turn_ratio, [0.2, 0.2, 0.0, 0.5]), (sequence_ratio, [0.3, 0.3, 0.0, 0.3])],
)
def test_ratios_by_hand(ratio, expected):
    then = torch.tensor([[-1.0, -1.0, NAN, -1.0]], dtype=torch.float64)
    now = (then + torch.tensor([[0.1, 0.3, 0.0, 0.5]])).requires_grad_()
    value = ratio(now, then, GAP)
    assert value[0].tolist() == pytest.approx(expected)
    weights = torch.tensor([[1.0, 2.0, 4.0, 8.0]])
    assert torch.autograd.grad((value * weights).sum(), now)[0].tolist() == [[1.0, 2.0, 0.0, 8.0]]


@pytest.mark.parametrize(
    ("ratio", "reference"), [(turn_ratio, slow.turn_log_ratios), (product_ratio, slow.product_log_ratios)]
)
def test_ratios_equal_a_slow_loop(ratio, reference):
    for seed in range(20):
        given = batch(seed)
        mask = given["is_trained_BT"]
        now, then = given["logprobs_BT"], given["behaviour_logprobs_BT"]
        want = reference(rows(now, mask), rows(then, mask))
        assert ratio(now, then, mask).tolist() == [pytest.approx([w or 0.0 for w in row]) for row in want]


def test_one_turn_a_row_is_one_sequence_and_one_token_is_one_token():
    now, then = -torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[False, True, True, False, False], [True] * 5, [False] * 5])
    torch.testing.assert_close(turn_ratio(now, then, mask), sequence_ratio(now, then, mask))
    one = torch.zeros(3, 5, dtype=torch.bool)
    one[:, 2] = True
    torch.testing.assert_close(product_ratio(now, then, one), token_ratio(now, then, one))


def at(surrogate, log_ratios: list[float], advantage: float) -> tuple[list[float], list[float], list[bool], list[bool]]:
    """Losses, gradient of their mean, masks, of one sequence whose second token is not trained."""
    leaf = torch.tensor([log_ratios], dtype=torch.float64, requires_grad=True)
    mask = torch.ones_like(leaf, dtype=torch.bool)
    mask[0, 1] = False
    losses, low, high = surrogate(leaf, torch.tensor([[advantage]], dtype=torch.float64), mask)
    mean = losses[mask].mean()
    return (
        losses[mask].tolist(),
        torch.autograd.grad(mean, leaf)[0][mask].tolist(),
        low[mask].tolist(),
        high[mask].tolist(),
    )


def test_geometric_mean_by_hand():
    # A > 0: min(0.6, 0.4) and −0.6 stay: mean (0.4 − 0.6)/2 = −0.1; the cut token has no gradient
    losses, grads, low, high = at(GeometricMean(), [0.6, 0.0, -0.6], 2.0)
    assert losses == pytest.approx([-2 * math.exp(-0.1)] * 2)
    assert grads == pytest.approx([0.0, -math.exp(-0.1)])
    assert (low, high) == ([False, False], [True, False])
    # A < 0: 0.6 stays, max(−0.6, −0.4): mean 0.1
    losses, grads, low, high = at(GeometricMean(), [0.6, 0.0, -0.6], -2.0)
    assert losses == pytest.approx([2 * math.exp(0.1)] * 2)
    assert grads == pytest.approx([math.exp(0.1), 0.0])
    assert (low, high) == ([False, True], [False, False])
    # each side has its own bound
    assert at(GeometricMean(0.1, 0.7), [0.6, 0.0, -0.6], 2.0)[0] == pytest.approx([-2.0, -2.0])
    assert at(GeometricMean(0.1, 0.7), [0.6, 0.0, -0.6], -2.0)[0] == pytest.approx([2 * math.exp(0.25)] * 2)
    assert GeometricMean() == GeometricMean(0.4, 0.4)


def test_regression_by_hand():
    # (½·(0.6 − 0.2) − 1)² = 0.64; slope 2·(−0.8)·½
    losses, grads, low, high = at(Regression(0.5), [0.6, 0.0, -0.2], 1.0)
    assert losses == pytest.approx([0.64, 0.64])
    assert grads == pytest.approx([-0.8, -0.8])
    assert not any(low + high)
    assert at(Regression(), [0.0, 0.0, 0.0], 1.5)[1] == pytest.approx([-3.0, -3.0])


def test_signed_by_hand():
    taper = Signed(Cispo(0, 0), Cispo(1, 0))
    # good: weight 1 whatever the ratio; bad: the ratio up to 1
    losses, grads, _, _ = at(taper, [math.log(3), 0.0, math.log(0.5)], 2.0)
    assert (losses, grads) == (pytest.approx([-2.0, -2.0]), pytest.approx([-1.0, -1.0]))
    losses, grads, low, high = at(taper, [math.log(3), 0.0, math.log(0.5)], -2.0)
    assert (losses, grads) == (pytest.approx([2.0, 1.0]), pytest.approx([1.0, 0.5]))
    assert (low, high) == ([False, False], [True, False])
    # A = 0 is not good
    assert at(Signed(Regression(), Unclipped()), [0.3, 0.0, 0.0], 0.0)[0] == [0.0, 0.0]


@pytest.mark.parametrize("surrogate", [GeometricMean(), GeometricMean(0.05, 0.1), Regression(0.7)], ids=repr)
def test_gradients_of_whole_sequences_by_finite_differences(surrogate):
    recipe = Recipe(credit=GroupCenter(), surrogate=surrogate, aggregate=SequenceMean())
    for seed in (3, 4):
        given = batch(seed)
        leaf = given["logprobs_BT"].clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda x, given=given: loss(recipe, given, logprobs_BT=x), leaf, atol=1e-5)


def test_whole_sequences_equal_a_slow_loop():
    recipe = Recipe(credit=GroupCenter(), surrogate=GeometricMean(0.2, 0.1), aggregate=SequenceMean())
    for seed in range(10):
        given = batch(seed)
        mask = given["is_trained_BT"]
        apart = rows(given["logprobs_BT"] - given["behaviour_logprobs_BT"], mask)
        made = [
            slow.geometric_mean(row, advantage, 0.2, 0.1)
            for row, advantage in zip(apart, given["advantages_B1"][:, 0].tolist(), strict=True)
            if any(d is not None for d in row)
        ]
        assert loss(recipe, given).item() == pytest.approx(math.fsum(made) / len(made), rel=1e-5)  # weights are float32


def test_geometric_mean_far_from_its_bounds_is_gspo():
    given = batch(5, spread=0.05)
    wide = Recipe(credit=GroupCenter(), surrogate=GeometricMean(9, 9), aggregate=SequenceMean())
    gspo = Recipe(credit=GroupCenter(), ratio=sequence_ratio, surrogate=Clip(0.9, 9), aggregate=SequenceMean())
    torch.testing.assert_close(gradient(wide, given), gradient(gspo, given))


MASK = torch.tensor([[True, True, False, True], [True, False, False, False], [False] * 4, [True, True, True, False]])
IDS = Ids(prompts_B=torch.tensor([7, 3, 3, 3]), rollouts_B=torch.tensor([0, 1, 2, 1]))


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        # turns: 2, 1, 1, 3 tokens: a quarter each
        (PerTurn(), [[1 / 8, 1 / 8, 0, 1 / 4], [1 / 4, 0, 0, 0], [0] * 4, [1 / 12, 1 / 12, 1 / 12, 0]]),
        # prompt 7 has 3 tokens, prompt 3 has 4: a half each
        (PerPrompt(), [[1 / 6, 1 / 6, 0, 1 / 6], [1 / 8, 0, 0, 0], [0] * 4, [1 / 8, 1 / 8, 1 / 8, 0]]),
        # rollouts 0 and 1 have tokens, 2 has none
        (PerRollout(), [[1 / 6, 1 / 6, 0, 1 / 6], [1 / 8, 0, 0, 0], [0] * 4, [1 / 8, 1 / 8, 1 / 8, 0]]),
    ],
    ids=repr,
)
def test_means_by_hand(aggregate, expected):
    torch.testing.assert_close(aggregate(MASK, IDS), torch.tensor(expected))
    with pytest.raises(TrainError, match="no token of the batch"):
        aggregate(MASK & ~MASK, IDS)


def test_means_equal_a_slow_loop():
    draw = torch.Generator().manual_seed(1)
    for _ in range(20):
        mask = torch.rand(6, 9, generator=draw) < 0.5
        losses = torch.randn(6, 9, generator=draw, dtype=torch.float64)
        names = torch.randint(3, (6,), generator=draw)
        listed = rows(losses, mask)
        by_name = [[name] * 9 for name in names.tolist()]
        by_turn = []
        for row, values in enumerate(listed):
            unit = [(-1, -1)] * 9
            for number, turn in enumerate(slow.turns(values)):
                for t in turn:
                    unit[t] = (row, number)
            by_turn.append(unit)
        for aggregate, units in (
            (PerPrompt(), by_name),
            (PerRollout(), by_name),
            (PerTurn(), by_turn),
        ):
            got = (aggregate(mask, Ids(names, names)).double() * losses).sum().item()
            assert got == pytest.approx(slow.unit_mean(listed, units), rel=1e-5, abs=1e-7)


def test_means_say_what_they_need():
    assert (PerPrompt().needs, PerRollout().needs) == ({"prompts_B"}, {"rollouts_B"})
    with pytest.raises(TrainError, match="prompts_B, one number for each of 4 sequences; got nothing"):
        PerPrompt()(MASK)
    with pytest.raises(TrainError, match=r"rollouts_B.*got shape \(3,\)"):
        PerRollout()(MASK, Ids(rollouts_B=torch.arange(3)))


def test_straight_through_by_hand():
    leaf = torch.tensor(math.log(2), dtype=torch.float64, requires_grad=True)
    value = StraightThrough()(leaf, torch.zeros((), dtype=torch.float64))
    # k3's value ½ − 1 + log 2, k2's slope d = log 2
    assert value.item() == pytest.approx(math.log(2) - 0.5)
    assert torch.autograd.grad(value, leaf)[0].item() == pytest.approx(math.log(2))
    assert StraightThrough(k1, k3)(leaf, torch.zeros(())).item() == pytest.approx(math.log(2))
    assert StraightThrough() == StraightThrough(value=k3, gradient=k2)


def test_the_reverse_kl_s_gradient_is_k2_s():
    """E over the policy of the estimator's gradient, by enumeration, is that of the exact KL."""
    ref = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64).log()
    logits = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    now = logits.log_softmax(-1)
    (want,) = torch.autograd.grad(exact(now, ref), logits, retain_graph=True)
    made = (now.detach().exp() * StraightThrough()(now, ref)).sum()
    torch.testing.assert_close(torch.autograd.grad(made, logits, retain_graph=True)[0], want)
    (forward,) = torch.autograd.grad(exact_forward(now, ref), logits, retain_graph=True)
    (third,) = torch.autograd.grad((now.detach().exp() * k3(now, ref)).sum(), logits)
    torch.testing.assert_close(third, forward)


def test_exact_forward_by_hand():
    p, q = torch.tensor([0.5, 0.5]).double().log(), torch.tensor([0.25, 0.75]).double().log()
    assert exact_forward(p, q).item() == pytest.approx(0.25 * math.log(0.5) + 0.75 * math.log(1.5))


def test_of_sequence_by_hand():
    now, ref = torch.tensor([[-1.0, NAN, -2.0]]), torch.tensor([[-1.5, NAN, -2.25]])
    mask = torch.tensor([[True, False, True]])
    # d = 0.5 + 0.25
    assert of_sequence(k1, now, ref, mask).tolist() == [0.75]
    assert of_sequence(k2, now, ref, mask).tolist() == [0.28125]


def test_kl_in_the_reward_by_hand():
    now, ref = torch.tensor([[-1.0, NAN, -2.0]], requires_grad=True), torch.tensor([[-1.5, NAN, -2.25]])
    mask = torch.tensor([[True, False, True]])
    made = penalised(torch.tensor([[0.0, NAN, 1.0]]), now, ref, mask, coefficient=0.5)
    assert made.tolist() == [[-0.25, 0.0, 0.875]]
    assert not made.requires_grad
    made = penalised(torch.tensor([[0.0, NAN, 1.0]]), now, ref, mask, coefficient=1.0, estimator=k2)
    assert made.tolist() == [[-0.125, 0.0, 0.96875]]
    good = [torch.zeros(1, 3), torch.zeros(1, 3), torch.zeros(1, 3)]
    for column, name in enumerate(("reward", "log-probability", "reference log-probability")):
        given = [values.clone() for values in good]
        given[column][0, 2] = NAN
        with pytest.raises(TrainError, match=f"^{name} of sequence 0, token 2 is nan"):
            penalised(*given, mask, coefficient=1.0)
