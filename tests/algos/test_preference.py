"""Preference losses: cases by hand, laws between them, finite differences, refusals."""

import math
from dataclasses import replace

import pytest
import torch

from palestra.algos.preference import Dpo, Ipo, Kto, Orpo, Pairs, Rebel, SimPo, bradley_terry
from palestra.errors import TrainError


def vector(*values):
    return torch.tensor(values, dtype=torch.float64)


def log_sigmoid(x):
    return -math.log1p(math.exp(-x))


# h = (−2 − −5) − (−3 − −4) = 2
PAIRS = Pairs(vector(-2.0), vector(-5.0), vector(-3.0), vector(-4.0), vector(4), vector(2))


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (Dpo(0.5), -log_sigmoid(1.0)),
        (Dpo(0.5, smoothing=0.25), -0.75 * log_sigmoid(1.0) - 0.25 * log_sigmoid(-1.0)),
        (Ipo(0.5), 1.0),  # (2 − 1)²
        (Ipo(0.25), 0.0),
        # means −0.5 and −2.5: 2·2 − 1 = 3
        (SimPo(), -log_sigmoid(3.0)),
        # log odds: −0.5 − log(1 − e^−0.5), −2.5 − log(1 − e^−2.5)
        (
            Orpo(0.1),
            0.5 - 0.1 * log_sigmoid(-0.5 - math.log(1 - math.exp(-0.5)) - (-2.5 - math.log(1 - math.exp(-2.5)))),
        ),
        (lambda pairs: Rebel(0.5)(pairs, vector(1.0)), 9.0),  # (2/0.5 − 1)²
        (lambda pairs: bradley_terry(vector(3.0), vector(1.0)), -log_sigmoid(2.0)),
        (lambda pairs: bradley_terry(vector(3.0), vector(1.0), vector(0.5)), -log_sigmoid(1.5)),
    ],
)
def test_by_hand(loss, value):
    assert loss(PAIRS).tolist() == pytest.approx([value])


def test_kto_by_hand():
    """log ratios 1 and 1, z = 0.5, β = 2: σ(1) and σ(−1)."""
    made = Kto(2.0, wanted=3.0)(vector(-1, -1), vector(-2, -2), torch.tensor([True, False]), vector(0.5).mean())
    assert made.tolist() == pytest.approx([3 * (1 - 1 / (1 + math.exp(-1))), 1 - 1 / (1 + math.exp(1))])
    below = Kto(2.0)(vector(-1.0), vector(-2.0), torch.tensor([True]), torch.tensor(-7.0))
    assert below.item() == pytest.approx(1 - 1 / (1 + math.exp(-2)))  # z is never below 0


@pytest.mark.parametrize("loss", [Dpo(), Dpo(0.3, 0.1), Ipo(0.4), SimPo(), Orpo(0.5)], ids=repr)
def test_gradients_by_finite_differences(loss):
    draw = torch.Generator().manual_seed(0)
    chosen, rejected, ref, other = -3 * torch.rand(4, 5, generator=draw, dtype=torch.float64) - 0.5
    lengths = torch.tensor([1.0, 2, 3, 4, 5], dtype=torch.float64)

    def value(c, r):
        return loss(Pairs(c, r, ref, other, lengths, lengths.flip(0))).mean()

    leaves = chosen.requires_grad_(), rejected.requires_grad_()
    assert torch.autograd.gradcheck(value, leaves)
    c, r = torch.autograd.grad(value(*leaves), leaves)
    if not isinstance(loss, Ipo):
        assert (c < 0).all(), "the chosen answer becomes likelier"
        assert (r > 0).all() or (isinstance(loss, Dpo) and loss.smoothing), "the rejected one less so"


def test_no_gradient_reaches_the_reference():
    refs = vector(-1.0).requires_grad_(), vector(-2.0).requires_grad_()
    made = Dpo()(replace(PAIRS, chosen_N=vector(-2.0).requires_grad_(), ref_chosen_N=refs[0], ref_rejected_N=refs[1]))
    assert torch.autograd.grad(made.sum(), refs, allow_unused=True) == (None, None)


def test_the_policy_as_its_own_reference_starts_at_log_two():
    own = replace(PAIRS, ref_chosen_N=PAIRS.chosen_N, ref_rejected_N=PAIRS.rejected_N)
    assert Dpo()(own).item() == pytest.approx(math.log(2))
    assert Ipo(0.5)(own).item() == pytest.approx(1.0)


def test_dpo_stays_finite_far_out():
    far = Pairs(vector(-1e6, 0.0), vector(0.0, -1e6), vector(0.0, 0.0), vector(0.0, 0.0))
    assert torch.isfinite(Dpo()(far)).all() and Dpo()(far)[1] == 0


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Dpo()(Pairs(vector(-1.0), vector(-2.0))), "needs ref_chosen_N, which the pairs lack"),
        (lambda: SimPo()(Pairs(vector(-1.0), vector(-2.0))), "needs chosen_lengths_N"),
        (lambda: Dpo()(replace(PAIRS, chosen_N=vector(math.nan))), "log-probability of a chosen answer 0 is nan"),
        (lambda: Dpo()(replace(PAIRS, rejected_N=vector(-1, -2))), "must be a vector of 1 numbers"),
        (lambda: Dpo()(replace(PAIRS, ref_chosen_N=vector(-math.inf))), "ref_chosen_N 0 is -inf"),
        (lambda: SimPo()(replace(PAIRS, chosen_lengths_N=vector(0))), "an answer of no tokens"),
        (lambda: Orpo()(replace(PAIRS, chosen_N=vector(0.0))), "must be below 0"),
        (lambda: Rebel()(PAIRS, vector(1, 2)), "reward gap must be a vector of 1 numbers"),
        (lambda: Kto()(vector(-1.0), vector(-1.0), vector(1.0), vector(0.0)), "must be 1 bools"),
        (lambda: Dpo()(Pairs(vector(), vector(), vector(), vector())), "one number or more"),
    ],
)
def test_what_makes_no_sense_is_told(make, told):
    with pytest.raises(TrainError, match=told):
        make()
