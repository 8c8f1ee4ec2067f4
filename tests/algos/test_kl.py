"""KL estimators: hand cases, unbiasedness by exact enumeration, gradients, and the ends of the range."""

from __future__ import annotations

import math

import pytest
import torch

from palestra.algos.kl import exact, k1, k2, k3
from tests.reference import slow

POLICY = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
REFERENCE = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)
KL = sum(p * math.log(p / q) for p, q in zip(POLICY.tolist(), REFERENCE.tolist(), strict=True))


@pytest.mark.parametrize(
    ("estimator", "expected"),
    # d = log 0.5 − log 0.25 = log 2;  k3 = exp(−log 2) − 1 + log 2
    [(k1, math.log(2)), (k2, math.log(2) ** 2 / 2), (k3, 0.5 - 1 + math.log(2))],
)
def test_by_hand(estimator, expected):
    assert estimator(torch.tensor(0.5).double().log(), torch.tensor(0.25).double().log()).item() == pytest.approx(
        expected
    )


@pytest.mark.parametrize("estimator", [k1, k2, k3])
def test_equals_a_slow_loop(estimator):
    draw = torch.Generator().manual_seed(2)
    now_BT, ref_BT = -torch.rand(2, 4, 6, generator=draw, dtype=torch.float64) * 4
    want = [
        slow.kl_estimate(estimator.__name__, p, q)
        for p, q in zip(now_BT.flatten().tolist(), ref_BT.flatten().tolist(), strict=True)
    ]
    assert estimator(now_BT, ref_BT).flatten().tolist() == pytest.approx(want)


@pytest.mark.parametrize("estimator", [k1, k3])
def test_k1_and_k3_are_unbiased(estimator):
    """E over the policy, summed over the vocabulary: no sampling, no luck."""
    assert (POLICY * estimator(POLICY.log(), REFERENCE.log())).sum().item() == pytest.approx(KL)


def test_k2_is_biased_and_k3_is_never_negative():
    assert (POLICY * k2(POLICY.log(), REFERENCE.log())).sum().item() != pytest.approx(KL, rel=0.01)
    d_T = torch.linspace(-10, 10, 401, dtype=torch.float64)
    # A unit in the last place of expm1 at most: one of d²/2 is far above it.
    assert (k3(d_T, torch.zeros_like(d_T)) >= -1e-16).all()
    small = torch.tensor(1e-7, dtype=torch.float64)
    assert k3(small, torch.zeros_like(small)).item() == pytest.approx(5e-15, rel=1e-3, abs=0)


@pytest.mark.parametrize(
    ("estimator", "slope"), [(k1, lambda d: 1.0), (k2, lambda d: d), (k3, lambda d: 1 - math.exp(-d))]
)
def test_gradients(estimator, slope):
    for d in (-1.5, 0.0, 0.7):
        leaf = torch.tensor(d, dtype=torch.float64, requires_grad=True)
        (grad,) = torch.autograd.grad(estimator(leaf, torch.zeros((), dtype=torch.float64)), leaf)
        assert grad.item() == pytest.approx(slope(d))


def test_exact_is_the_sum_and_its_gradient_is_right():
    logits = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    assert exact(POLICY.log(), REFERENCE.log()).item() == pytest.approx(KL)
    assert torch.autograd.gradcheck(lambda x: exact(x.log_softmax(-1), REFERENCE.log()), logits)


def test_exact_with_impossible_tokens():
    never = torch.tensor([0.0, 0.6, 0.4], dtype=torch.float64).log()
    # 0.6·log(0.6/0.2) + 0.4·log(0.4/0.6)
    assert exact(never, REFERENCE.log()).item() == pytest.approx(0.6 * math.log(3) + 0.4 * math.log(2 / 3))
    assert exact(POLICY.log(), never).item() == math.inf
    assert exact(never, never).item() == pytest.approx(0.0)


def test_k3_of_an_absurd_reference_is_finite():
    leaf = torch.tensor(-200.0, requires_grad=True)
    value = k3(leaf, torch.tensor(0.0))
    (grad,) = torch.autograd.grad(value, leaf)
    assert math.isfinite(value.item()) and math.isfinite(grad.item())
