"""Muon: what it promises of a matrix, and the same steps as torch's own, but for bfloat16."""

from __future__ import annotations

import pytest
import torch

from palestra.train.muon import Muon, orthogonalised


@pytest.mark.parametrize("shape", [(8, 8), (24, 8), (8, 24), (1, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    u, _, vt = torch.linalg.svd(matrix, full_matrices=False)
    inside = u.T @ orthogonalised(matrix) @ vt.T
    assert ((inside.diag() > 0.6) & (inside.diag() < 1.3)).all()
    torch.testing.assert_close(inside, inside.diag().diag(), atol=1e-4, rtol=0)


def test_a_matrix_of_zeros_stays_one():
    assert orthogonalised(torch.zeros(3, 4)).tolist() == torch.zeros(3, 4).tolist()


def test_scale_does_not_count():
    matrix = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(orthogonalised(matrix * 1e-3), orthogonalised(matrix), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 48)])
def test_ten_steps_equal_torch_s_within_its_bfloat16(shape):
    draw = torch.Generator().manual_seed(2)
    start = torch.randn(shape, generator=draw)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    steppers = [Muon([ours], 0.1, weight_decay=0.01), torch.optim.Muon([theirs], lr=0.1, weight_decay=0.01)]
    for _ in range(10):
        gradient = torch.randn(shape, generator=draw)
        for weight, stepper in zip((ours, theirs), steppers, strict=True):
            weight.grad = gradient.clone()
            stepper.step()
    moved = (ours - start).norm()
    assert (ours - theirs).norm() < 0.03 * moved


def test_only_matrices_are_taken():
    with pytest.raises(ValueError, match=r"got a parameter of shape \(3,\)"):
        Muon([torch.nn.Parameter(torch.zeros(3))], 0.1)


def test_its_state_is_saved_and_loaded():
    def step(weight: torch.nn.Parameter, stepper: Muon, steps: range) -> None:
        for at in steps:
            weight.grad = torch.eye(4) * (at + 1)
            stepper.step()

    whole, halves = (torch.nn.Parameter(torch.ones(4, 4)) for _ in range(2))
    step(whole, Muon([whole], 0.1), range(4))
    first, second = Muon([halves], 0.1), Muon([halves], 0.1)
    step(halves, first, range(2))
    second.load_state_dict(first.state_dict())
    step(halves, second, range(2, 4))
    assert torch.equal(halves, whole)
