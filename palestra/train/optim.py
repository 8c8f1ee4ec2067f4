"""Optimisers: Muon for the blocks' matrices, AdamW for the rest; or AdamW alone."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn

from palestra.config import Config
from palestra.errors import TrainError
from palestra.train.muon import Muon


class OptimiserSettings(Config):
    """kind: "muon" steps the blocks' matrices along orthogonalised momentum (``palestra.train.muon``) at ``matrix_lr``,
    and everything else by AdamW at ``lr``; "adamw" steps all by AdamW at ``lr``.

    The rate rises linearly over ``warmup`` steps, then falls linearly to ``final`` × its peak at the last step.
    clip  largest global gradient norm (L2)
    """

    kind: Literal["muon", "adamw"] = "adamw"
    lr: float = 5e-4
    matrix_lr: float = 0.02
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    warmup: int = 10
    final: float = 0.1
    clip: float = 1.0


class SftOptimiser(OptimiserSettings):
    """Muon, fast: training from nothing on clean targets."""

    kind: Literal["muon", "adamw"] = "muon"
    lr: float = 4e-3
    warmup: int = 20
    final: float = 0.5


class Optimiser:
    """The optimisers of one model behind one step."""

    def __init__(self, model: nn.Module, settings: OptimiserSettings, *, steps: int) -> None:
        self.settings, self.steps = settings, steps
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        is_muon = settings.kind == "muon"
        matrices = [p for n, p in model.named_parameters() if is_muon and n.startswith("blocks.") and p.dim() == 2]
        others = [p for p in self.parameters if not any(p is matrix for matrix in matrices)]
        self.parts: list[torch.optim.Optimizer] = [
            torch.optim.AdamW(
                others, lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay, fused=True
            )
        ]
        if matrices:
            self.parts.append(Muon(matrices, lr=settings.matrix_lr, weight_decay=settings.weight_decay))
        self.peaks = [part.param_groups[0]["lr"] for part in self.parts]

    def factor(self, step: int) -> float:
        """Share of the peak learning rate at ``step`` (from 0)."""
        s = self.settings
        rise = min(1.0, (step + 1) / max(1, s.warmup))
        return rise * (1.0 - (1.0 - s.final) * step / max(1, self.steps))

    def step(self, step: int) -> float:
        """Clip, step, clear; returns the gradient norm before clipping. TrainError when it is not finite: no step
        then."""
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.settings.clip))
        if norm != norm or norm == float("inf"):
            raise TrainError(
                f"step {step}: the gradient norm is {norm}; no step was taken, resume from the last checkpoint"
            )
        for part, peak in zip(self.parts, self.peaks, strict=True):
            for group in part.param_groups:
                group["lr"] = peak * self.factor(step)
            part.step()
            part.zero_grad(set_to_none=True)
        return norm

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for part, saved in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(saved)
