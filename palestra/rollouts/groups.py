"""Many rollouts at once, in groups, at a bounded concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from palestra.envs.base import Environment
from palestra.models.client import Policy
from palestra.rollouts.agent import rollout
from palestra.rollouts.seeds import stable_id, stable_seed
from palestra.types import Group, SamplingParams, Task, Trajectory


@dataclass(frozen=True)
class GroupPlan:
    """The rollouts to be made of one task. ``id`` names the group in the store, its rollouts ``<id>-<index>``;
    rollout i samples from the stream of (``seed``, i)."""

    id: str
    seed: int
    task: Task
    step: int
    size: int


def plan_group(run: str, seed: int, step: int, position: int, task: Task, size: int) -> GroupPlan:
    """The ``position``-th group of step ``step`` of ``run``.

    The id depends on the run, the samples do not: the same seed gives the same samples in any run, and no two groups
    of a run share a stream.
    """
    place = (step, position, task.env, task.id)
    return GroupPlan(stable_id(run, *place), stable_seed(seed, *place), task, step, size)


async def run_groups(
    envs: dict[str, Environment],
    plans: Sequence[GroupPlan],
    policy: Policy,
    params: SamplingParams,
    *,
    concurrency: int = 1024,
    on_rollout: Callable[[Trajectory], None] | None = None,
) -> list[Group]:
    """Make all rollouts of ``plans``; the groups come back in the order of the plans.

    At most ``concurrency`` rollouts are alive at once.
    """
    places = asyncio.Semaphore(concurrency)

    async def one(plan: GroupPlan, index: int) -> Trajectory:
        async with places:
            asked = replace(params, seed=stable_seed(plan.seed, index))
            made = await rollout(envs[plan.task.env], plan.task, policy, asked, id=f"{plan.id}-{index}", index=index)
        if on_rollout is not None:
            on_rollout(made)
        return made

    async def group(plan: GroupPlan) -> Group:
        made = await asyncio.gather(*(one(plan, index) for index in range(plan.size)))
        return Group(plan.id, plan.task, plan.step, tuple(made))

    return list(await asyncio.gather(*(group(plan) for plan in plans)))
