"""Gradients as values, so that micro-batches can be worked on side by side and added in a fixed order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

Gradient = Sequence[Tensor | None]


def gradient(loss: Tensor, model: nn.Module) -> Gradient:
    """∂loss/∂weight for each trainable weight of ``model``, None for one that took no part. ``.grad`` is left alone."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    return torch.autograd.grad(loss, weights, allow_unused=True)


def add_gradient(model: nn.Module, part: Gradient) -> None:
    """Add a gradient to the weights' ``.grad``."""
    weights = (weight for weight in model.parameters() if weight.requires_grad)
    for weight, share in zip(weights, part, strict=True):
        if share is not None:
            weight.grad = share if weight.grad is None else weight.grad.add_(share)
