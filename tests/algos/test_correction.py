"""Correction of a sampler that is not the trainer, and regularisers of the entropy: hand cases, laws, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from palestra.algos.aggregate import PerMaxLen, PerPrompt, TokenMean
from palestra.algos.baselines import Greedy
from palestra.algos.correction import (
    Mis,
    Tis,
    age_weights,
    effective_share,
    effective_size,
    rate_scale,
)
from palestra.algos.kl import StraightThrough
from palestra.algos.normalise import BatchNorm
from palestra.algos.ratio import product_ratio, sequence_ratio, token_ratio
from palestra.algos.recipes import DAPO, GRPO, REINFORCE
from palestra.algos.regularisers import EntropyTarget, clip_cov, covariance, top_share
from palestra.errors import TrainError
from tests.algos.batches import batch, gradient, loss

NAN = float("nan")
MASK = torch.tensor([[True, True, False, True]])
THEN = torch.tensor([[-1.0, -1.0, NAN, -1.0]], dtype=torch.float64)
NEAR = THEN + torch.tensor([[4.0, 0.25, 1.0, 1.0]], dtype=torch.float64).log()


@pytest.mark.parametrize(
    ("correction", "weights", "low", "high"),
    [
        (Tis(), [2.0, 0.25, 1.0], [False] * 3, [True, False, False]),
        (Tis(math.inf), [4.0, 0.25, 1.0], [False] * 3, [False] * 3),
        # the product of 4, ¼ and 1 is 1
        (Tis(2.0, product_ratio), [1.0] * 3, [False] * 3, [False] * 3),
        (Mis(0.5, 5.0), [4.0, 0.0, 1.0], [False, True, False], [False] * 3),
        (Mis(0.24, 2.0), [0.0, 0.25, 1.0], [False] * 3, [True, False, False]),
        (Mis(1.5, 9.0, sequence_ratio), [0.0] * 3, [True] * 3, [False] * 3),
    ],
    ids=repr,
)
def test_weights_by_hand(correction, weights, low, high):
    made, is_low, is_high = correction(NEAR.clone().requires_grad_(), THEN, MASK)
    assert made[MASK].tolist() == pytest.approx(weights)
    assert (is_low[MASK].tolist(), is_high[MASK].tolist()) == (low, high)
    assert not made.requires_grad
    assert torch.isfinite(made).all()


def test_the_defaults_are_those_of_the_literature():
    assert (Tis(), Mis()) == (Tis(2.0, token_ratio), Mis(0.5, 5.0, token_ratio))


def test_an_absurd_ratio_stays_finite():
    for correction in (Tis(math.inf), Mis(0, math.inf)):
        weights, *_ = correction(THEN + 500, THEN, MASK)
        assert torch.isfinite(weights).all()


def corrected(seed: int = 3):
    given = batch(seed)
    draw = torch.Generator().manual_seed(seed)
    noise = torch.randn(given["logprobs_BT"].shape, generator=draw, dtype=torch.float64) * 0.3
    given["proximal_logprobs_BT"] = given["logprobs_BT"] + noise
    return given


def test_decoupled_is_the_product_of_both_ratios():
    """Without any bound π/π_prox · π_prox/μ = π/μ: value and gradient are those of the plain ratio."""
    given = corrected()
    plain = replace(REINFORCE, aggregate=PerMaxLen(10))
    decoupled = replace(plain, correction=Tis(math.inf))
    torch.testing.assert_close(loss(decoupled, given), loss(plain, given))
    torch.testing.assert_close(gradient(decoupled, given), gradient(plain, given))


def test_the_proximal_policy_gets_no_gradient():
    given = corrected()
    given["proximal_logprobs_BT"].requires_grad_()
    leaf = given["logprobs_BT"].clone().requires_grad_()
    made = loss(replace(GRPO, correction=Tis()), given, logprobs_BT=leaf)
    assert torch.autograd.grad(made, given["proximal_logprobs_BT"], allow_unused=True) == (None,)


def test_it_is_the_proximal_ratio_that_is_clipped():
    """π/π_prox = 1, π_prox/μ = 4: the clip does not bite, the weight is cut to 2; −2·A."""
    then = torch.tensor([[-2.0]], dtype=torch.float64)
    now = then + math.log(4)
    recipe = replace(DAPO, correction=Tis())
    mask = torch.ones(1, 1, dtype=torch.bool)
    leaf = now.clone().requires_grad_()
    value, totals = recipe.loss(
        logprobs_BT=leaf,
        behaviour_logprobs_BT=then,
        proximal_logprobs_BT=now,
        advantages_B1=torch.tensor([[1.5]], dtype=torch.float64),
        weights_BT=recipe.aggregate(mask),
        is_trained_BT=mask,
    )
    assert value.item() == pytest.approx(-3.0)
    assert torch.autograd.grad(value, leaf)[0].item() == pytest.approx(-3.0)
    got = recipe.finished({name: float(total) for name, total in totals.items()})
    assert got == pytest.approx(
        {
            "clip_low": 0,
            "clip_high": 0,
            "ratio": 1,
            # log μ − log π = −log 4;  π/μ − 1 − log 4
            "behaviour_k1": -math.log(4),
            "behaviour_k3": 3 - math.log(4),
            "correction": 2,
            "correction_low": 0,
            "correction_high": 1,
            "effective_share": 1,
        }
    )


@pytest.mark.parametrize("aggregate", [TokenMean(), PerMaxLen(100)], ids=repr)
def test_effective_share_is_that_of_the_tokens(aggregate):
    recipe = replace(REINFORCE, aggregate=aggregate, correction=Tis(3.0))
    given = {
        "logprobs_BT": NEAR,
        "behaviour_logprobs_BT": THEN,
        "proximal_logprobs_BT": NEAR,
        "advantages_B1": torch.ones(1, 1, dtype=torch.float64),
        "is_trained_BT": MASK,
    }
    _, totals = recipe.loss(**given, weights_BT=aggregate(MASK))
    got = recipe.finished({name: float(value) for name, value in totals.items()})
    # weights 3, ¼, 1: (4.25)² / (3·(9 + 1/16 + 1))
    assert got["effective_share"] == pytest.approx(4.25**2 / (3 * 10.0625))
    assert "correction_one" not in got and "correction_square" not in got
    assert REINFORCE.finished({"loss": 1.0}) == {"loss": 1.0}


def test_micro_batches_sum_with_a_correction_and_an_entropy_bonus():
    recipe = replace(GRPO, correction=Mis(0.8, 1.2), entropy_coefficient=0.01, kl_coefficient=0.1)
    given = corrected(4)
    given["entropy_BT"] = torch.where(given["is_trained_BT"], 0.7, NAN)
    weights = recipe.aggregate(given["is_trained_BT"])
    whole, totals = recipe.loss(**given, weights_BT=weights)
    parts = [
        recipe.loss(**{k: v[cut] for k, v in given.items()}, weights_BT=weights[cut])
        for cut in (slice(0, 2), slice(2, 5))
    ]
    torch.testing.assert_close(sum(part for part, _ in parts), whole)
    for name, total in totals.items():
        torch.testing.assert_close(sum(stats[name] for _, stats in parts), total)
    # the mean entropy is 0.7: the bonus lowers the loss by 0.007
    without = replace(recipe, entropy_coefficient=0.0).loss(**given, weights_BT=weights)[0]
    assert (whole - without).item() == pytest.approx(-0.007, rel=1e-6)


def test_the_entropy_s_gradient_goes_into_the_loss():
    logits = torch.tensor([[0.3, -1.0, 0.8]], dtype=torch.float64, requires_grad=True)
    recipe = replace(REINFORCE, entropy_coefficient=0.5)
    mask = torch.ones(1, 1, dtype=torch.bool)

    def value(x):
        log = x.log_softmax(-1)
        return recipe.loss(
            logprobs_BT=log[:, :1],
            behaviour_logprobs_BT=log[:, :1].detach() * 0 - 1,
            advantages_B1=torch.zeros(1, 1, dtype=torch.float64),
            weights_BT=recipe.aggregate(mask),
            is_trained_BT=mask,
            entropy_BT=-(log.exp() * log).sum(-1, keepdim=True),
        )[0]

    assert torch.autograd.gradcheck(value, logits)
    log = logits.detach().log_softmax(-1)
    assert value(logits).item() == pytest.approx(0.5 * (log.exp() * log).sum().item())
    with pytest.raises(TrainError, match="must not be detached"):
        recipe.loss(
            logprobs_BT=logits[:, :1],
            behaviour_logprobs_BT=log[:, :1],
            advantages_B1=torch.zeros(1, 1),
            weights_BT=torch.ones(1, 1),
            is_trained_BT=mask,
            entropy_BT=torch.ones(1, 1),
        )


def test_a_recipe_says_what_it_needs():
    whole = replace(
        GRPO,
        credit=Greedy(),
        normalise=BatchNorm(per_task=True),
        aggregate=PerPrompt(),
        correction=Tis(),
        entropy_coefficient=0.1,
        kl_coefficient=0.1,
    )
    needs = {"greedy_reward", "tasks_B", "prompts_B", "proximal_logprobs", "entropy", "ref_logprobs"}
    assert whole.needs == needs
    assert GRPO.needs == frozenset()
    whole.require(needs | {"lengths_G"})
    with pytest.raises(TrainError, match=r"needs entropy, tasks_B, which the batch lacks; it holds: greedy_reward, p"):
        whole.require(needs - {"tasks_B", "entropy"})


@pytest.mark.parametrize(
    ("recipe", "missing"),
    [(replace(GRPO, correction=Tis()), "proximal_logprobs"), (replace(GRPO, entropy_coefficient=1.0), "entropy")],
)
def test_what_is_missing_is_named(recipe, missing):
    with pytest.raises(TrainError, match=f"needs {missing}, which the batch lacks"):
        loss(recipe, batch(3))


@pytest.mark.parametrize("name", ["proximal", "entropy"])
def test_a_number_that_is_not_finite_is_named(name):
    given = corrected()
    given["entropy_BT"] = torch.zeros_like(given["logprobs_BT"])
    column = next(key for key in given if key.startswith(name))
    given[column] = given[column].clone()
    given[column][2, 0] = math.inf
    with pytest.raises(TrainError, match=f"{name}.*of sequence 2, token 0 is inf"):
        loss(replace(GRPO, correction=Tis()), given)


def test_effective_size_by_hand():
    assert effective_size(torch.ones(5)) == 5
    assert effective_size(torch.tensor([1, 0, 0])) == 1
    # (1 + 3)²/(1 + 9)
    assert effective_size(torch.tensor([1.0, 3.0])) == pytest.approx(1.6)
    assert effective_size(torch.zeros(3)) == 0
    assert effective_share(2.0, 5.0, 4.0) == pytest.approx(0.2)
    assert effective_share(2.0, 5.0) == pytest.approx(0.8)
    with pytest.raises(TrainError, match="importance weight 1 is nan"):
        effective_size(torch.tensor([1.0, NAN]))


def test_rate_scale_and_age():
    assert [rate_scale(share) for share in (0.0, 0.25, 1.0)] == [0.0, 0.5, 1.0]
    assert rate_scale(0.25, power=1.0) == 0.25
    for share in (-0.1, 1.1, NAN):
        with pytest.raises(TrainError, match="share of effective samples"):
            rate_scale(share)
    ages = torch.tensor([0, 1, 3, 4])
    assert age_weights(ages).tolist() == [1.0] * 4
    assert age_weights(ages, decay=0.5, oldest=3).tolist() == [1.0, 0.5, 0.125, 0.0]
    with pytest.raises(TrainError, match=r"age of sequence 1 is -2\.0"):
        age_weights(torch.tensor([0, -2, -1]))


def test_covariance_by_hand():
    logprobs = torch.tensor([[-1.0, -3.0, NAN]], requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    # means −2 and 1: (1)(3) and (−1)(−3)
    made = covariance(logprobs, torch.tensor([[4.0, -2.0, NAN]]), mask)
    assert made.tolist() == [[3.0, 3.0, 0.0]]
    assert not made.requires_grad
    assert covariance(logprobs, torch.tensor([[4.0]]), mask).tolist() == [[0.0, -0.0, 0.0]]
    with pytest.raises(TrainError, match="no token is trained"):
        covariance(logprobs, torch.zeros(1, 3), mask & ~mask)
    with pytest.raises(TrainError, match="advantage of sequence 0, token 1 is nan"):
        covariance(logprobs, torch.tensor([[4.0, NAN, 0.0]]), mask)
    with pytest.raises(TrainError, match="log-probability of sequence 0, token 2 is nan"):
        covariance(logprobs, torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool))


def test_clip_cov_chooses_within_the_range():
    values = torch.tensor([[0.9, 1.0, 3.0, 5.0, 5.1, 2.0]])
    mask = torch.tensor([[True, True, True, True, True, False]])
    inside = torch.tensor([[False, True, True, True, False, False]])
    draw = torch.Generator().manual_seed(0)
    one = clip_cov(values, mask, draw)
    assert one.sum() == 1 and (one & ~inside).sum() == 0
    # 0.4 of five tokens are two; of 1.0 only three qualify
    assert clip_cov(values, mask, draw, share=0.4).sum() == 2
    assert clip_cov(values, mask, draw, share=1.0).tolist() == inside.tolist()
    assert clip_cov(values, mask, draw, share=1.0, low=0.5, high=0.95).tolist() == [[True] + [False] * 5]
    assert clip_cov(values, mask, draw, low=9.0, high=10.0).sum() == 0
    found = {tuple(clip_cov(values, mask, draw)[0].tolist()) for _ in range(30)}
    assert len(found) == 3


def test_top_share_by_hand():
    values = torch.tensor([[0.1, 0.9, NAN], [0.5, 0.9, 0.2]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert top_share(values, mask, 0.2).tolist() == [[False, True, False], [False, False, False]]
    assert top_share(values, mask, 0.4).tolist() == [[False, True, False], [False, True, False]]
    assert top_share(values, mask, 0.61).tolist() == [[False, True, False], [True, True, False]]
    assert torch.equal(top_share(values, mask, 1.0), mask)
    assert top_share(values, mask, 1e-4).sum() == 1
    assert top_share(values, mask & ~mask, 0.5).sum() == 0
    for share in (0.0, 1.01):
        with pytest.raises(TrainError, match="share"):
            top_share(values, mask, share)
    with pytest.raises(TrainError, match="value of sequence 0, token 2 is nan"):
        top_share(values, mask | True, 0.5)


def test_entropy_target_by_hand():
    control = EntropyTarget()
    assert control == EntropyTarget(target=0.2, step=0.005)
    assert control(0.01, 0.1) == pytest.approx(0.015)
    assert control(0.01, 0.3) == pytest.approx(0.005)
    assert control(0.01, 0.2) == pytest.approx(0.005)
    assert control(0.001, 0.3) == 0.0
    assert [control.used(0.01, h) for h in (0.1, 0.2, 0.21)] == [0.01, 0.01, 0.0]


def test_a_recipe_is_written_the_same_in_every_process():
    plain = replace(GRPO, correction=Tis(2.0, sequence_ratio), kl=StraightThrough()).to_plain()
    assert plain["correction"] == "Tis(cap=2.0, ratio=sequence_ratio)"
    assert plain["kl"] == "StraightThrough(value=k3, gradient=k2)" and plain["ratio"] == "token_ratio"
