"""What every training run shares: begin or resume, checkpoint, end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palestra.envs.base import UNCERTIFIED, Environment, uncertified
from palestra.errors import TrainError
from palestra.files import atomic_folder
from palestra.models.load import load_native, save_model
from palestra.models.native import NativePolicy
from palestra.store import Store
from palestra.train.checkpoint import load_checkpoint, save_checkpoint
from palestra.train.optim import Optimiser, OptimiserSettings
from palestra.train.settings import TrainSettings

OnStep = Callable[[int, Mapping[str, float]], None]


@dataclass
class Run:
    """A run under way: who it is, where it stands, and what it trains."""

    id: str
    settings: TrainSettings
    store: Store
    policy: NativePolicy
    optimiser: Optimiser
    step: int = 0
    state: Mapping[str, Any] | None = None
    """What the last checkpoint knew, when this is a resumed run."""

    def checkpoint(self, state: Mapping[str, Any], trained: Sequence[str] = ()) -> None:
        folder = self.settings.out / "checkpoints"
        model = self.policy.model
        save_checkpoint(self.store, self.id, folder, self.step, model, self.optimiser, state, trained=trained)

    def finish(self) -> Path:
        """Write the final model and close the run; returns the model's folder."""
        folder = self.settings.out / "model"
        with atomic_folder(folder) as fresh:
            save_model(self.policy.model, self.policy.version, fresh)
        self.store.end_run(self.id, "finished")
        return folder


@contextmanager
def training_run(
    settings: TrainSettings,
    store: Store,
    optimiser: OptimiserSettings,
    steps: int,
    *,
    resume: bool,
    envs: Sequence[Environment] = (),
) -> Iterator[Run]:
    """Open a run: a new one, or with ``resume`` the newest of that name, at its last checkpoint.

    Leaving by an exception or an interrupt marks the run "interrupted"; it resumes from its last checkpoint. A run that
    never reached a checkpoint resumes from the start. Raises StoreError where there is no run to resume, TrainError
    where its settings were others.
    """
    start = load_native(settings.model.removeprefix("native:"), seed=settings.seed)
    model = start.model
    # Version counts this run's optimiser steps: the starting policy is version 0 whatever it was called elsewhere.
    policy = NativePolicy(model, name=settings.model, version=0, workers=settings.threads)
    run = Run("", settings, store, policy, Optimiser(model, optimiser, steps=steps))
    config = settings.model_dump(mode="json")
    if resume:
        found = store.find_run(settings.name)
        _require_equal(dict(found.config), config, found.id)
        run.id = found.id
        saved = load_checkpoint(store, run.id, model, run.optimiser)
        if saved is not None:
            run.step, run.state = saved
            policy.version = run.step
        store.end_run(run.id, "running")
    else:
        run.id = store.begin_run(settings.name, settings.method, {**config, UNCERTIFIED: uncertified(envs)})
    try:
        yield run
    except BaseException:
        store.end_run(run.id, "interrupted")
        raise


def _require_equal(stored: dict[str, Any], now: dict[str, Any], run: str) -> None:
    for key in sorted((stored.keys() | now.keys()) - {UNCERTIFIED}):
        if stored.get(key) != now.get(key):
            raise TrainError(
                f"run {run} cannot be resumed with another {key}: it began with {stored.get(key)!r}, "
                f"got {now.get(key)!r}; use the same settings, or start a new run without --resume"
            )
