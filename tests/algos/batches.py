"""Random batches: ragged, with masked gaps and a fully masked row; garbage stands wherever nothing is trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

GARBAGE = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e30])


def batch(seed: int, rows: int = 5, tokens: int = 7, spread: float = 0.3) -> dict[str, Tensor]:
    """Arguments of ``Recipe.loss`` except the weights, in float64; row 1 is masked whole, row 0 ends in padding."""
    draw = torch.Generator().manual_seed(seed)
    is_trained_BT = torch.rand(rows, tokens, generator=draw) < 0.7
    is_trained_BT[:, 0] = True
    is_trained_BT[1] = False
    is_trained_BT[0, tokens // 2 :] = False
    logprobs_BT = -torch.rand(rows, tokens, generator=draw, dtype=torch.float64) * 3
    noise = torch.randn(2, rows, tokens, generator=draw, dtype=torch.float64) * spread
    garbage_BT = GARBAGE.double()[torch.randint(4, (rows, tokens), generator=draw)]
    columns = {
        "logprobs_BT": logprobs_BT,
        "behaviour_logprobs_BT": logprobs_BT + noise[0],
        "ref_logprobs_BT": logprobs_BT + noise[1],
    }
    advantages_B1 = torch.randn(rows, 1, generator=draw, dtype=torch.float64)
    advantages_B1[1] = float("nan")
    return {
        **{name: torch.where(is_trained_BT, value, garbage_BT) for name, value in columns.items()},
        "advantages_B1": advantages_B1,
        "is_trained_BT": is_trained_BT,
    }


def rows(values_BT: Tensor, is_trained_BT: Tensor) -> list[list[Any]]:
    """As lists, with None where nothing is trained."""
    return [
        [value if trained else None for value, trained in zip(row, mask, strict=True)]
        for row, mask in zip(values_BT.tolist(), is_trained_BT.tolist(), strict=True)
    ]


def loss(recipe: Any, given: dict[str, Tensor], **changed: Tensor) -> Tensor:
    """The recipe's loss of the whole batch."""
    given = {**given, **changed}
    weights_BT = recipe.aggregate(given["is_trained_BT"])
    result: Tensor = recipe.loss(**given, weights_BT=weights_BT)[0]
    return result


def gradient(recipe: Any, given: dict[str, Tensor], **changed: Tensor) -> Tensor:
    """∂loss/∂logprobs_BT."""
    given = {**given, **changed}
    leaf_BT = given["logprobs_BT"].clone().requires_grad_()
    (result,) = torch.autograd.grad(loss(recipe, given, logprobs_BT=leaf_BT), leaf_BT)
    return result
