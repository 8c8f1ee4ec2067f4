"""A rollout run: a policy over the tasks of some environments, into the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from statistics import fmean
from typing import Any

from palestra.envs.base import UNCERTIFIED, Environment, uncertified
from palestra.models.client import Policy
from palestra.rollouts.groups import plan_group, run_groups
from palestra.store import Store
from palestra.types import SamplingParams, Task, Trajectory

GROUPS_PER_APPEND = 512
"""Groups made between two writes: what a crash can cost."""


@dataclass(frozen=True)
class RolloutPlan:
    """tasks: how many over all environments, spread evenly; n rollouts of each; how they are sampled."""

    split: str = "train"
    tasks: int = 256
    n: int = 1
    temperature: float = 1.0
    max_tokens: int = 40
    seed: int = 0
    concurrency: int = 1024


@dataclass(frozen=True)
class RolloutReport:
    """What came of a rollout run. ``reward`` is the mean of the scored ones, None without any."""

    run: str
    rollouts: int
    reward: float | None
    statuses: Mapping[str, int]

    def to_plain(self) -> dict[str, Any]:
        return {"run": self.run, "rollouts": self.rollouts, "reward": self.reward, "statuses": dict(self.statuses)}


def spread(envs: Sequence[Environment], split: str, seed: int, n: int) -> list[Task]:
    """``n`` distinct tasks, one from each environment in turn; fewer where the environments have fewer."""
    # A split that never ends is cut at its size: each task comes once.
    streams = [islice(env.tasks(split, seed), env.spec.splits.get(split)) for env in envs]
    return list(islice((task for each in zip_longest(*streams) for task in each if task is not None), n))


async def roll_out(
    name: str,
    envs: Sequence[Environment],
    policy: Policy,
    store: Store,
    plan: RolloutPlan,
    *,
    on_rollout: Callable[[Trajectory], None] | None = None,
) -> RolloutReport:
    """Make the rollouts of ``plan`` under a new run ``name``; each batch is durable before the next begins."""
    run = store.begin_run(name, "rollout", {"policy": policy.name, **vars(plan), UNCERTIFIED: uncertified(envs)})
    by_id = {env.spec.id: env for env in envs}
    tasks = spread(envs, plan.split, plan.seed, plan.tasks)
    plans = [plan_group(run, plan.seed, 0, at, task, plan.n) for at, task in enumerate(tasks)]
    params = SamplingParams(plan.temperature, plan.max_tokens)
    statuses: Counter[str] = Counter()
    rewards: list[float] = []
    for at in range(0, len(plans), GROUPS_PER_APPEND):
        groups = await run_groups(
            by_id,
            plans[at : at + GROUPS_PER_APPEND],
            policy,
            params,
            concurrency=plan.concurrency,
            on_rollout=on_rollout,
        )
        store.append(run, groups)
        made = [trajectory for group in groups for trajectory in group.trajectories]
        statuses.update(trajectory.status.value for trajectory in made)
        rewards += [trajectory.reward for trajectory in made if trajectory.reward is not None]
    store.end_run(run, "finished")
    return RolloutReport(run, statuses.total(), fmean(rewards) if rewards else None, statuses)


def rate_of(step: Callable[[int, int, str], None], total: int) -> Callable[[object], None]:
    """To be called with each finished rollout: tells ``step`` how many are done, of ``total``, and how fast."""
    done, start = 0, time.perf_counter()

    def tell(made: object) -> None:
        nonlocal done
        done += 1
        step(done, total, f"{done / (time.perf_counter() - start):.0f} rollouts/s")

    return tell
