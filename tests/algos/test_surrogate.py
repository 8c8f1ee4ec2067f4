"""Ratios and surrogates: hand cases with gradients, the slow loop, and what an extreme ratio does."""

from __future__ import annotations

import math

import pytest
import torch

from palestra.algos.ratio import bounded_exp, sequence_ratio, token_ratio
from palestra.algos.surrogate import Cispo, Clip, Sapo, Unclipped
from tests.algos.batches import batch, rows
from tests.reference import slow

ONE = torch.ones(1, 1, dtype=torch.bool)
SURROGATES = [
    (Unclipped(), slow.unclipped),
    (Clip(0.2, 0.28), slow.clip(0.2, 0.28)),
    (Clip(0.1, 0.3, dual=1.5), slow.clip(0.1, 0.3, 1.5)),
    (Cispo(0.2, 0.3), slow.cispo(0.2, 0.3)),
    (Sapo(1.0, 1.5), slow.sapo(1.0, 1.5)),
]


def at(surrogate, ratio: float, advantage: float) -> tuple[float, float, bool, bool]:
    """(loss, ∂loss/∂log ρ, is_low, is_high) of one token."""
    log_ratio = torch.tensor([[ratio]], dtype=torch.float64).log().requires_grad_()
    loss, low, high = surrogate(log_ratio, torch.tensor([[advantage]], dtype=torch.float64), ONE)
    (grad,) = torch.autograd.grad(loss.sum(), log_ratio)
    return loss.item(), grad.item(), low.item(), high.item()


@pytest.mark.parametrize(
    ("surrogate", "ratio", "advantage", "expected"),
    [
        # −1.5·2, and d(−ρA)/d log ρ = −ρA
        (Unclipped(), 1.5, 2.0, (-3.0, -3.0, False, False)),
        # good and grown beyond 1.28: held at −1.28·2, no gradient
        (Clip(0.2, 0.28), 1.5, 2.0, (-2.56, 0.0, False, True)),
        # good and between 1.2 and 1.28: clip-higher still lets it grow
        (Clip(0.2, 0.28), 1.25, 2.0, (-2.5, -2.5, False, False)),
        # good but shrunk: the minimum is the plain term, gradient pulls it back
        (Clip(0.2, 0.28), 0.5, 2.0, (-1.0, -1.0, False, False)),
        # bad and shrunk below 0.8: held at 0.8·2, no gradient
        (Clip(0.2, 0.28), 0.5, -2.0, (1.6, 0.0, True, False)),
        # bad and grown: the plain term, with its gradient
        (Clip(0.2, 0.28), 1.5, -2.0, (3.0, 3.0, False, False)),
        # bad and grown beyond the dual bound: held at 3·2, no gradient
        (Clip(0.2, 0.28, dual=3.0), 4.0, -2.0, (6.0, 0.0, False, True)),
        # the dual bound never touches good tokens
        (Clip(0.2, 0.28, dual=3.0), 4.0, 2.0, (-2.56, 0.0, False, True)),
        # bounded weight 1.3; the gradient stays: −1.3·2
        (Cispo(0.2, 0.3), 2.0, 2.0, (-2.6, -2.6, False, True)),
        (Cispo(0.2, 0.3), 0.5, -2.0, (1.6, 1.6, True, False)),
        # −(4/1)·σ(0)·2 = −4; slope 4/τ·τ·σ'(0)·ρ·A = 4·¼·2 = 2: REINFORCE at ρ = 1
        (Sapo(), 1.0, 2.0, (-4.0, -2.0, False, False)),
        # τ = 2: −(4/2)·σ(0)·(−2) = 2; slope 2, whatever τ
        (Sapo(1.0, 2.0), 1.0, -2.0, (2.0, 2.0, False, False)),
    ],
)
def test_by_hand(surrogate, ratio, advantage, expected):
    assert at(surrogate, ratio, advantage) == pytest.approx(expected)


@pytest.mark.parametrize(("surrogate", "reference"), SURROGATES, ids=lambda x: repr(x)[:30])
def test_equals_a_slow_loop(surrogate, reference):
    draw = torch.Generator().manual_seed(0)
    log_ratios_BT = torch.randn(20, 9, generator=draw, dtype=torch.float64)
    advantages_B1 = torch.randn(20, 1, generator=draw, dtype=torch.float64)
    got_BT = surrogate(log_ratios_BT, advantages_B1, torch.ones(20, 9, dtype=torch.bool))[0]
    for row, advantage, got in zip(log_ratios_BT.tolist(), advantages_B1[:, 0].tolist(), got_BT.tolist(), strict=True):
        assert got == pytest.approx([reference(d, advantage) for d in row])


@pytest.mark.parametrize("surrogate", [s for s, _ in SURROGATES], ids=repr)
@pytest.mark.parametrize("advantage", [1.7, -0.6])
def test_at_ratio_one_the_gradient_is_that_of_reinforce(surrogate, advantage):
    assert at(surrogate, 1.0, advantage)[1] == pytest.approx(-advantage)


@pytest.mark.parametrize("surrogate", [s for s, _ in SURROGATES], ids=repr)
def test_no_advantage_no_gradient(surrogate):
    for ratio in (0.1, 1.0, 5.0):
        _, grad, *_ = at(surrogate, ratio, 0.0)
        assert grad == 0.0


@pytest.mark.parametrize("surrogate", [s for s, _ in SURROGATES], ids=repr)
@pytest.mark.parametrize("log_ratio", [-1e4, -100.0, 100.0, 1e4])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_an_extreme_ratio_gives_finite_numbers(surrogate, log_ratio, advantage):
    leaf = torch.tensor([[log_ratio]], requires_grad=True)
    loss = surrogate(leaf, torch.tensor([[advantage]]), ONE)[0].sum()
    (grad,) = torch.autograd.grad(loss, leaf)
    assert torch.isfinite(loss) and torch.isfinite(grad).all()


def test_the_bound_of_a_ratio_is_far_out():
    assert bounded_exp(torch.tensor([19.0, 50.0, -50.0]).double()).tolist() == pytest.approx(
        [math.exp(19), math.exp(20), math.exp(-20)]
    )


@pytest.mark.parametrize(
    ("ratio", "reference"), [(token_ratio, slow.token_log_ratios), (sequence_ratio, slow.sequence_log_ratios)]
)
def test_log_ratios_equal_a_slow_loop_and_are_zero_under_the_mask(ratio, reference):
    for seed in range(20):
        given = batch(seed)
        mask_BT = given["is_trained_BT"]
        now_BT, then_BT = given["logprobs_BT"], given["behaviour_logprobs_BT"]
        got_BT = ratio(now_BT, then_BT, mask_BT)
        expected = reference(rows(now_BT, mask_BT), rows(then_BT, mask_BT))
        for got, want in zip(got_BT.tolist(), expected, strict=True):
            assert got == pytest.approx([0.0 if w is None else w for w in want])


def test_the_sequence_ratio_gives_each_token_the_gradient_of_its_own():
    now_BT = torch.tensor([[-1.0, -2.0, float("nan")]], dtype=torch.float64, requires_grad=True)
    then_BT = torch.tensor([[-1.5, -2.7, 0.0]], dtype=torch.float64)
    log_s_BT = sequence_ratio(now_BT, then_BT, torch.tensor([[True, True, False]]))
    # (0.5 + 0.7) / 2
    assert log_s_BT.tolist()[0] == pytest.approx([0.6, 0.6, 0.0])
    assert torch.autograd.grad(log_s_BT.sum(), now_BT)[0].tolist() == [[1.0, 1.0, 0.0]]
