"""Start a training run from its settings alone: the one way in, for the command line and for the main job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from palestra.envs.bundle import load_environments
from palestra.store import Store
from palestra.train.settings import TrainSettings
from palestra.train.sft import train_sft
from palestra.train.sync import train_rl


@dataclass(frozen=True)
class TrainReport:
    """run, its optimiser steps, the folder of the final model, seconds of this call, and the last step's metrics."""

    run: str
    steps: int
    model: str
    seconds: float
    last: Mapping[str, float]

    def to_plain(self) -> dict[str, Any]:
        return {**vars(self), "last": dict(self.last)}


def train(
    settings: TrainSettings,
    *,
    resume: bool = False,
    on_step: Callable[[int, int, Mapping[str, float]], None] | None = None,
) -> TrainReport:
    """Run ``settings`` to the end; ``on_step`` is called with (steps done, steps in all, metrics of this one)."""
    start = time.perf_counter()
    steps = settings.sft.steps if settings.method == "sft" else settings.rl.steps

    def tell(step: int, metrics: Mapping[str, float]) -> None:
        if on_step is not None:
            on_step(step, steps, metrics)

    with Store.open(settings.store, create=settings.method == "rl") as store:
        if settings.method == "sft":
            run = train_sft(settings, store, resume=resume, on_step=tell)
        else:
            envs = load_environments(settings.environments, allow_uncertified=settings.allow_uncertified)
            run = train_rl(settings, envs, store, resume=resume, on_step=tell)
        metrics = store.metrics(run.id)
    last = metrics[-1][1] if metrics else {}
    return TrainReport(run.id, run.step, str(settings.out / "model"), time.perf_counter() - start, last)


def step_line(metrics: Mapping[str, float]) -> str:
    """The numbers of a training step that a person watches."""
    shown = {
        "reward": ("reward", "{:.3f}"),
        "loss": ("loss", "{:.3f}"),
        "groups_kept": ("kept", "{:.0%}"),
        "kl_k3": ("kl", "{:.4f}"),
        "entropy": ("entropy", "{:.3f}"),
        "rollouts_per_s": ("rollouts/s", "{:.0f}"),
        "tokens_per_s": ("tokens/s", "{:.0f}"),
    }
    return "  ".join(f"{name} {form.format(metrics[key])}" for key, (name, form) in shown.items() if key in metrics)
