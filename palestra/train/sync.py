"""Synchronous online RL, the loop to read first: choose tasks, roll out, grade, credit, step.

Everything between two optimiser steps is sampled by the weights of that moment (staleness 0). Every group is durable in
the store before it is trained on, and marked as spent in the transaction that points the store at the checkpoint which
contains it. So a killed run goes on from its last checkpoint with the rollouts that it had already made, in the same
order and to the same weights.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from palestra.algos import recipe
from palestra.curricula.samplers import UniformSampler
from palestra.envs.base import Environment
from palestra.errors import TrainError
from palestra.models.load import load_native
from palestra.rollouts.groups import plan_group, run_groups
from palestra.store import Store
from palestra.train.run import OnStep, Run, training_run
from palestra.train.settings import TrainSettings
from palestra.train.update import update
from palestra.types import Group, SamplingParams, Status, Task, Trajectory


def train_rl(
    settings: TrainSettings,
    envs: Sequence[Environment],
    store: Store,
    *,
    resume: bool = False,
    on_step: OnStep | None = None,
    on_rollout: Callable[[Trajectory], None] | None = None,
) -> Run:
    """Train ``settings.model`` by ``settings.rl.recipe`` on ``envs``; returns the finished run."""
    rl = settings.rl
    algorithm = recipe(rl.recipe)
    with training_run(settings, store, rl.optimiser, rl.steps, resume=resume, envs=envs) as run:
        starting = load_native(settings.model.removeprefix("native:"), seed=settings.seed).model
        sampler = UniformSampler(envs, split="train", seed=settings.seed)
        sampler.load_state_dict(dict(run.state or sampler.state_dict()))
        trained: list[str] = []
        while run.step < rl.steps:
            start = time.perf_counter()
            groups = asyncio.run(roll_out(run, envs, sampler.draw(rl.groups), on_rollout))
            between = time.perf_counter()
            is_measured = "ref_logprobs" in algorithm.needs or run.step % rl.reference_every == 0
            metrics = describe(groups) | update(run, algorithm, groups, starting if is_measured else None)
            trained += [group.id for group in groups]
            metrics |= pace(groups, between - start, time.perf_counter() - between)
            store.add_metrics(run.id, run.step, metrics)
            run.step += 1
            run.policy.version = run.step
            if on_step is not None:
                on_step(run.step, metrics)
            if run.step % rl.checkpoint_every == 0 or run.step == rl.steps:
                run.checkpoint(sampler.state_dict(), trained)
                trained = []
        run.finish()
    return run


async def roll_out(
    run: Run, envs: Sequence[Environment], tasks: Sequence[Task], on_rollout: Callable[[Trajectory], None] | None
) -> list[Group]:
    """The groups of this step: those that the store already holds, and the rest made now and stored.

    Raises TrainError when more than ``max_faults`` of the rollouts have no score.
    """
    rl, seed = run.settings.rl, run.settings.seed
    plans = [plan_group(run.id, seed, run.step, at, task, rl.group_size) for at, task in enumerate(tasks)]
    groups = {group.id: group for group in run.store.groups(run.id, step=run.step)}
    missing = [plan for plan in plans if plan.id not in groups]
    params = SamplingParams(rl.temperature, rl.max_tokens)
    made = await run_groups({env.spec.id: env for env in envs}, missing, run.policy, params, on_rollout=on_rollout)
    run.store.append(run.id, made)
    groups |= {group.id: group for group in made}
    _refuse_faults(run, [trajectory for group in made for trajectory in group.trajectories])
    return [groups[plan.id] for plan in plans]


def _refuse_faults(run: Run, made: Sequence[Trajectory]) -> None:
    faults = [trajectory for trajectory in made if trajectory.reward is None]
    if len(faults) > run.settings.rl.max_faults * len(made):
        raise TrainError(
            f"run {run.id}, step {run.step}: {len(faults)} of {len(made)} rollouts have no score, more than max_faults "
            f"= {run.settings.rl.max_faults} allows; the first: {faults[0].id}: {faults[0].status}: {faults[0].error}"
        )


def describe(groups: Sequence[Group]) -> dict[str, float]:
    """What a step's rollouts were like. reward: mean score; truncated: share cut off; faults: share without a score;
    tokens: mean sampled tokens of a rollout; pass_any: share of tasks that at least one rollout solved."""
    made = [trajectory for group in groups for trajectory in group.trajectories]
    rewards = [trajectory.reward for trajectory in made if trajectory.reward is not None]
    return {
        "reward": fmean(rewards) if rewards else float("nan"),
        "pass_any": fmean(any(t.reward == 1.0 for t in group.trajectories) for group in groups),
        "truncated": fmean(trajectory.status is Status.TRUNCATED for trajectory in made),
        "faults": fmean(trajectory.reward is None for trajectory in made),
        "tokens": sum(sampled_tokens(trajectory) for trajectory in made) / len(made),
    }


def pace(groups: Sequence[Group], rollout_s: float, update_s: float) -> Mapping[str, float]:
    """Wall-clock seconds of the two halves of a step, and rates over the first."""
    made = [trajectory for group in groups for trajectory in group.trajectories]
    return {
        "rollout_s": rollout_s,
        "update_s": update_s,
        "rollouts_per_s": len(made) / rollout_s,
        "tokens_per_s": sum(sampled_tokens(trajectory) for trajectory in made) / rollout_s,
    }


def sampled_tokens(trajectory: Trajectory) -> int:
    return sum(len(turn.completion.ids) for turn in trajectory.turns)
