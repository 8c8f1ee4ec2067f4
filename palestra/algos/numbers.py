"""What every formula here asks of its numbers: finite where they count, ignored where they do not."""

from __future__ import annotations

import torch
from torch import Tensor

from palestra.errors import TrainError


def masked(values_BT: Tensor, is_trained_BT: Tensor) -> Tensor:
    """``values_BT`` with zeros where nothing is trained: chosen, not multiplied, as NaN times 0 is NaN."""
    return torch.where(is_trained_BT, values_BT, values_BT.new_zeros(()))


def check_finite(what: str, values_BT: Tensor, is_trained_BT: Tensor) -> None:
    """TrainError with row and column of the first trained number that is NaN or infinite."""
    is_bad_BT = is_trained_BT & ~torch.isfinite(values_BT)
    if bool(is_bad_BT.any()):
        row, column = is_bad_BT.nonzero()[0].tolist()
        raise TrainError(
            f"{what} of sequence {row}, token {column} is {float(values_BT[row, column].detach())}; "
            "that of a trained token must be finite"
        )


def check_vector(what: str, values_N: Tensor, size: int | None = None) -> Tensor:
    """``values_N`` in float32 (float64 stays). TrainError unless it is a non-empty vector of finite numbers, of
    ``size`` where one is given."""
    if values_N.dim() != 1 or len(values_N) == 0 or (size is not None and len(values_N) != size):
        expected = "one number or more" if size is None else f"{size} numbers"
        raise TrainError(f"{what} must be a vector of {expected}, got shape {tuple(values_N.shape)}")
    is_bad_N = ~torch.isfinite(values_N)
    if bool(is_bad_N.any()):
        at = int(is_bad_N.nonzero()[0])
        raise TrainError(f"{what} {at} is {float(values_N[at])}; it must be finite")
    return values_N if values_N.dtype == torch.float64 else values_N.float()
