"""Muon in float32. ``torch.optim.Muon`` iterates in bfloat16, which a CPU without bfloat16 units emulates: 35 times
slower there than float32, and then most of a step (docs/lab.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5


def orthogonalised(matrix: Tensor) -> Tensor:
    """Roughly U·Vᵀ of the matrix's singular value decomposition U·S·Vᵀ: every singular value near 1.

    Newton–Schulz, X ← aX + (bXXᵀ + c(XXᵀ)²)X from X = M/‖M‖, the quintic of K. Jordan et al., "Muon" (2024), whose
    values end in about [0.7, 1.2]. [M, N] float32 -> [M, N]; a matrix of zeros stays one."""
    a, b, c = COEFFICIENTS
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


class Muon(torch.optim.Optimizer):
    """Steps of matrices along their orthogonalised Nesterov momentum.

        m ← μm + (1 − μ)g;   W ← (1 − lr·λ)W − lr·√max(1, rows/columns)·orthogonalised((1 − μ)g + μm)

    ValueError for a parameter that is no matrix."""

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, *, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(matrices, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.dim() != 2:
                    raise ValueError(f"Muon steps matrices, got a parameter of shape {tuple(weight.shape)}")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                buffer = state.setdefault("momentum", torch.zeros_like(weight))
                buffer.lerp_(weight.grad, 1 - momentum)
                update = orthogonalised(weight.grad.lerp(buffer, momentum))
                weight.mul_(1 - lr * group["weight_decay"])
                weight.add_(update, alpha=-lr * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5)
