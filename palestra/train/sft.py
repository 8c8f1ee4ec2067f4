"""Supervised training: imitate stored trajectories."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random

from palestra.errors import TrainError
from palestra.models.workers import spread_over
from palestra.store import Store
from palestra.train.batch import Packed, pack
from palestra.train.gradient import Gradient, add_gradient, gradient
from palestra.train.logprobs import sampled_logprobs
from palestra.train.run import OnStep, Run, training_run
from palestra.train.settings import TrainSettings
from palestra.types import Turn


def train_sft(settings: TrainSettings, store: Store, *, resume: bool = False, on_step: OnStep | None = None) -> Run:
    """Fit the model to the turns of ``settings.sft.source`` that scored 1 on split "train"; returns the finished run.

        loss = −(1/N) Σ log π(token),   N = tokens of the batch: the mean over tokens, prompts left out

    Each pass over the turns is in a fresh order, fixed by the seed. Raises TrainError where the source has no such
    trajectory, StoreError where there is no such source.
    """
    sft = settings.sft
    source = store.find_run(sft.source)
    turns = [
        turn
        for group in store.groups(source.id, split="train")
        for trajectory in group.trajectories
        if trajectory.reward == 1.0
        for turn in trajectory.turns
    ]
    if not turns:
        raise TrainError(
            f"run {source.id} has no trajectory of split 'train' with score 1; make some with palestra rollout"
        )
    with training_run(settings, store, sft.optimiser, sft.steps, resume=resume) as run:
        order = _Epochs(len(turns), settings.seed)
        order.skip(run.step * sft.batch_size)
        while run.step < sft.steps:
            start = time.perf_counter()
            batch = [turns[at] for at in order.take(sft.batch_size)]
            metrics = _step(run, batch)
            metrics["tokens_per_s"] = metrics["tokens"] / (time.perf_counter() - start)
            store.add_metrics(run.id, run.step, metrics)
            run.step += 1
            run.policy.version = run.step
            if on_step is not None:
                on_step(run.step, metrics)
            if run.step % sft.checkpoint_every == 0 or run.step == sft.steps:
                run.checkpoint({})
        run.finish()
    return run


def _step(run: Run, batch: Sequence[Turn]) -> dict[str, float]:
    model, config, settings = run.policy.model, run.policy.model.config, run.settings
    tokens = sum(len(turn.completion.ids) for turn in batch)

    def work(packed: Packed) -> tuple[Gradient, float]:
        logprobs_BT, _ = sampled_logprobs(model, packed)
        loss = -logprobs_BT.sum() / tokens
        return gradient(loss, model), loss.item()

    batches = pack(batch, slots_per_batch=settings.slots_per_batch, window=config.window, padding=config.padding)
    loss = 0.0
    for part, share in spread_over(settings.threads, work, batches):
        add_gradient(model, part)
        loss += share
    return {"loss": loss, "grad_norm": run.optimiser.step(run.step), "tokens": float(tokens)}


class _Epochs:
    """Positions 0 … n−1 in one seeded permutation after another."""

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._rng, self._left = n, Random(seed), []

    def take(self, count: int) -> list[int]:
        while len(self._left) < count:
            epoch = list(range(self._n))
            self._rng.shuffle(epoch)
            self._left += epoch
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def skip(self, count: int) -> None:
        self.take(count)
