"""Whole recipes: slow loops, laws, gradients against finite differences, and a bandit that each must solve."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from palestra.algos import RECIPES, recipe
from palestra.algos.aggregate import SequenceMean, TokenMean
from palestra.algos.credit import Facts
from palestra.algos.kl import k2, k3
from palestra.algos.recipes import DAPO, DR_GRPO, GRPO, GSPO, REINFORCE
from palestra.algos.surrogate import Unclipped
from palestra.errors import ConfigError, TrainError
from tests.algos.batches import batch, gradient, loss, rows
from tests.reference import slow

SLOW = {
    "reinforce": (slow.token_log_ratios, slow.unclipped, slow.token_mean),
    "grpo": (slow.token_log_ratios, slow.clip(0.2, 0.2), slow.sequence_mean),
    "dr_grpo": (slow.token_log_ratios, slow.clip(0.2, 0.2), lambda losses: slow.per_max_len(losses, 4096)),
    "dapo": (slow.token_log_ratios, slow.clip(0.2, 0.28), slow.token_mean),
    "gspo": (slow.sequence_log_ratios, slow.clip(3e-4, 4e-4), slow.sequence_mean),
    "cispo": (slow.token_log_ratios, slow.cispo(1.0, 4.0), slow.token_mean),
    "sapo": (slow.token_log_ratios, slow.sapo(1.0, 1.05), slow.sequence_mean),
    "reinforce_pp": (slow.token_log_ratios, slow.clip(0.2, 0.2), slow.token_mean),
    "opo": (slow.token_log_ratios, slow.unclipped, slow.token_mean),
    "mc_grpo": (slow.token_log_ratios, slow.clip(0.2, 0.2), slow.sequence_mean),
    "qae": (slow.token_log_ratios, slow.clip(0.2, 0.28), slow.token_mean),
}
EVERY = sorted(RECIPES)


@pytest.mark.parametrize("name", sorted(SLOW))
def test_loss_equals_a_slow_loop(name):
    ratios, surrogate, mean = SLOW[name]
    for seed in range(10):
        given = batch(seed)
        mask_BT = given["is_trained_BT"]
        log_ratios = ratios(rows(given["logprobs_BT"], mask_BT), rows(given["behaviour_logprobs_BT"], mask_BT))
        losses = [
            [None if d is None else surrogate(d, advantage) for d in row]
            for row, advantage in zip(log_ratios, given["advantages_B1"][:, 0].tolist(), strict=True)
        ]
        assert loss(RECIPES[name], given).item() == pytest.approx(mean(losses), rel=1e-5)


@pytest.mark.parametrize("estimator", [k2, k3])
def test_kl_in_the_loss_equals_a_slow_loop(estimator):
    given = batch(4)
    mask_BT = given["is_trained_BT"]
    with_kl = replace(GRPO, kl=estimator, kl_coefficient=0.3)
    now, ref = rows(given["logprobs_BT"], mask_BT), rows(given["ref_logprobs_BT"], mask_BT)
    penalties = [
        [None if p is None else slow.kl_estimate(estimator.__name__, p, q) for p, q in zip(a, b, strict=True)]
        for a, b in zip(now, ref, strict=True)
    ]
    added = loss(with_kl, given).item() - loss(GRPO, given).item()
    assert added == pytest.approx(0.3 * slow.sequence_mean(penalties), rel=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_micro_batches_sum_to_the_batch(name):
    given, algorithm = batch(5, rows=8), RECIPES[name]
    weights_BT = algorithm.aggregate(given["is_trained_BT"])
    whole, stats = algorithm.loss(**given, weights_BT=weights_BT)
    cuts = [slice(0, 3), slice(3, 4), slice(4, 8)]
    parts = [
        algorithm.loss(**{key: value[cut] for key, value in given.items()}, weights_BT=weights_BT[cut]) for cut in cuts
    ]
    assert sum(part for part, _ in parts).item() == pytest.approx(whole.item(), rel=1e-6)
    for key, value in stats.items():
        assert sum(part[key] for _, part in parts).item() == pytest.approx(value.item(), rel=1e-6, abs=1e-9), key


@pytest.mark.parametrize("name", EVERY)
def test_order_padding_and_what_is_masked_change_nothing(name):
    given, algorithm = batch(6), RECIPES[name]
    want = loss(algorithm, given).item()
    order = torch.tensor([3, 0, 4, 1, 2])
    assert loss(algorithm, {key: value[order] for key, value in given.items()}).item() == pytest.approx(want, rel=1e-6)
    wide = {
        key: value
        if key == "advantages_B1"
        else torch.nn.functional.pad(value, (0, 4), value=False if value.dtype == torch.bool else float("nan"))
        for key, value in given.items()
    }
    assert loss(algorithm, wide).item() == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_no_gradient_reaches_what_is_masked(name):
    given = batch(7)
    grad_BT = gradient(RECIPES[name], given)
    assert torch.isfinite(grad_BT).all()
    assert (grad_BT[~given["is_trained_BT"]] == 0).all()
    assert (grad_BT[given["is_trained_BT"]] != 0).any()


@pytest.mark.parametrize("name", [name for name in EVERY if name not in ("gspo", "cispo", "topr")])
def test_gradients_are_those_of_finite_differences(name):
    """In double precision, away from the clips' corners. GSPO, CISPO and TOPR stop gradients, so that their values'
    finite differences are not their gradients; test_surrogate and test_levels work theirs by hand."""
    given = batch(8, spread=0.05)
    leaf_BT = given["logprobs_BT"].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(RECIPES[name], given, logprobs_BT=x), leaf_BT, eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", EVERY)
def test_on_policy_the_gradient_is_that_of_reinforce(name):
    given = batch(9)
    given["behaviour_logprobs_BT"] = given["logprobs_BT"]
    plain = replace(REINFORCE, aggregate=RECIPES[name].aggregate)
    torch.testing.assert_close(gradient(RECIPES[name], given), gradient(plain, given))


def test_gspo_on_sequences_of_one_token_is_grpo():
    given = batch(10, tokens=1)
    given["is_trained_BT"][:] = True
    given["advantages_B1"][1] = 0.3
    del given["ref_logprobs_BT"]
    given["logprobs_BT"] = torch.linspace(-3, -1, 5, dtype=torch.float64).unsqueeze(-1)
    given["behaviour_logprobs_BT"] = given["logprobs_BT"] + torch.tensor([[0.1], [-0.2], [1e-4], [0.0], [-1e-4]])
    narrow = replace(GRPO, surrogate=GSPO.surrogate)
    torch.testing.assert_close(loss(GSPO, given), loss(narrow, given))
    torch.testing.assert_close(gradient(GSPO, given), gradient(narrow, given))


def test_gspo_s_gradient_is_that_of_the_sequence_ratio():
    """d/dlog π_t of s·A/len is s·A/len, s = exp(mean log ρ): finite differences of the value without the stop."""
    now = torch.tensor([[-1.0, -2.0, -0.5]], dtype=torch.float64)
    then = now - torch.tensor([[0.1, -0.05, 0.2]], dtype=torch.float64)
    given = {
        "logprobs_BT": now,
        "behaviour_logprobs_BT": then,
        "advantages_B1": torch.tensor([[-1.5]], dtype=torch.float64),
        "is_trained_BT": torch.ones(1, 3, dtype=torch.bool),
    }
    plain = replace(GSPO, surrogate=Unclipped())
    leaf = now.clone().requires_grad_()
    value = 1.5 * (leaf - then).mean().exp()
    (want,) = torch.autograd.grad(value, leaf)
    torch.testing.assert_close(gradient(plain, given), want, rtol=1e-6, atol=1e-8)


def test_one_advantage_per_token_is_taken_as_it_is():
    given = batch(11)
    wide_BT = given["advantages_B1"].expand_as(given["logprobs_BT"]).clone()
    torch.testing.assert_close(loss(DAPO, given, advantages_B1=wide_BT), loss(DAPO, given))
    doubled_BT = wide_BT.clone()
    doubled_BT[0, 0] *= 2
    assert loss(DAPO, given, advantages_B1=doubled_BT) != loss(DAPO, given)


def test_statistics_by_hand():
    """Two trained tokens, A = +1: ratios 2 and 0.5; only the first is beyond 1.28."""
    algorithm = replace(DAPO, aggregate=TokenMean())
    then = torch.tensor([[-1.0, -1.0]], dtype=torch.float64)
    now = then + torch.tensor([[2.0, 0.5]], dtype=torch.float64).log()
    is_trained = torch.ones(1, 2, dtype=torch.bool)
    _, stats = algorithm.loss(
        logprobs_BT=now,
        behaviour_logprobs_BT=then,
        advantages_B1=torch.ones(1, 1, dtype=torch.float64),
        weights_BT=algorithm.aggregate(is_trained),
        is_trained_BT=is_trained,
        ref_logprobs_BT=then,
    )
    got = {name: value.item() for name, value in stats.items()}
    # k1 of (log 2, −log 2) is 0; k3 sampler‖trainer: d = ∓log 2: (2 − 1 − log 2 + ½ − 1 + log 2) / 2 = ¼
    assert got == pytest.approx(
        {
            "clip_low": 0.0,
            "clip_high": 0.5,
            "ratio": 1.25,
            "behaviour_k1": 0.0,
            "behaviour_k3": 0.25,
            "kl_k1": 0.0,
            "kl_k3": 0.25,
        },
        abs=1e-7,
    )


@pytest.mark.parametrize("column", ["logprobs_BT", "behaviour_logprobs_BT", "ref_logprobs_BT", "advantages_B1"])
def test_a_trained_number_that_is_not_finite_is_named(column):
    given = batch(12)
    given[column] = given[column].clone()
    given[column][2, 0] = float("nan")
    with pytest.raises(TrainError, match="sequence 2, token 0 is nan"):
        loss(DAPO, given)


def test_a_recipe_says_what_it_needs_and_refuses_to_go_without():
    with_kl = replace(GRPO, kl_coefficient=0.04)
    assert (GRPO.needs, with_kl.needs) == (frozenset(), {"ref_logprobs"})
    given = batch(13)
    del given["ref_logprobs_BT"]
    with pytest.raises(TrainError, match="needs ref_logprobs, which the batch lacks"):
        loss(with_kl, given)


def test_recipes_are_values():
    assert replace(GRPO) == GRPO
    assert DR_GRPO != GRPO
    with pytest.raises(FrozenInstanceError):
        GRPO.kl_coefficient = 1.0  # type: ignore[misc]
    plain = DAPO.to_plain()
    assert plain["credit"] == "GroupZScore(ddof=1, epsilon=1e-06)"
    assert plain["surrogate"] == "Clip(low=0.2, high=0.28, dual=None)"
    assert (plain["ratio"], plain["kl"], plain["kl_coefficient"]) == ("token_ratio", "k3", 0.0)
    assert replace(DAPO, aggregate=SequenceMean()).to_plain() != plain


def test_an_unknown_recipe_names_the_nearest():
    with pytest.raises(ConfigError, match=r"'gprc' is unknown.*grpo"):
        recipe("gprc")


@pytest.mark.parametrize("name", EVERY)
def test_it_solves_a_bandit(name):
    """Ten arms, of which the third pays 1: from 0.1 to above 0.9 in 150 steps of 4 groups of 8, two updates a batch."""
    algorithm = replace(RECIPES[name], aggregate=TokenMean()) if name == "dr_grpo" else RECIPES[name]
    draw = torch.Generator().manual_seed(0)
    logits_A = torch.zeros(10, requires_grad=True)
    optimiser = torch.optim.Adam([logits_A], lr=0.1)
    mask_B1, facts = torch.ones(32, 1, dtype=torch.bool), Facts(lengths_G=torch.ones(8))
    for _ in range(150):
        with torch.no_grad():
            arms_B = torch.multinomial(logits_A.softmax(-1), 32, replacement=True, generator=draw)
            behaviour_B1 = logits_A.log_softmax(-1)[arms_B].unsqueeze(-1)
            rewards_B = (arms_B == 2).float()
        advantages_B1 = torch.cat([algorithm.credit(group_G, facts) for group_G in rewards_B.split(8)]).unsqueeze(-1)
        if algorithm.normalise is not None:
            advantages_B1 = algorithm.normalise(advantages_B1, mask_B1)
        for _ in range(2):
            value, _ = algorithm.loss(
                logprobs_BT=logits_A.log_softmax(-1)[arms_B].unsqueeze(-1),
                behaviour_logprobs_BT=behaviour_B1,
                advantages_B1=advantages_B1,
                weights_BT=algorithm.aggregate(mask_B1),
                is_trained_BT=mask_B1,
            )
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
    assert logits_A.softmax(-1)[2] > 0.9
