"""Run a policy over held-out tasks and say how often it is right."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from palestra.envs.base import UNCERTIFIED, Environment, uncertified
from palestra.errors import ConfigError
from palestra.evals.metrics import pass_at_k
from palestra.intervals import Proportion
from palestra.models.client import Policy
from palestra.rollouts.groups import plan_group, run_groups
from palestra.rollouts.run import spread
from palestra.store import Store
from palestra.types import Group, SamplingParams, Trajectory

GREEDY_STEP, SAMPLED_STEP = 0, 1
"""Steps under which an evaluation's groups stand in the store."""


@dataclass(frozen=True)
class EvalPlan:
    """tasks: greedy answers over all environments, spread evenly; sampled_tasks of them are also answered ``k`` times
    at ``temperature`` for pass@k; max_tokens per answer."""

    split: str = "heldout"
    tasks: int = 1600
    sampled_tasks: int = 400
    k: int = 8
    temperature: float = 1.0
    max_tokens: int = 40
    seed: int = 0


@dataclass(frozen=True)
class EvalReport:
    """Greedy accuracy overall and by environment, mean pass@1 and pass@k, and rollouts that yielded no score."""

    run: str
    overall: Proportion
    by_env: dict[str, Proportion]
    pass_at: dict[int, float]
    unscored: dict[str, int]

    def to_plain(self) -> dict[str, Any]:
        return {
            **self.overall.to_plain(),
            "pass_at": {str(k): value for k, value in self.pass_at.items()},
            "by_env": {env: share.to_plain() for env, share in self.by_env.items()},
            "unscored": self.unscored,
            "run": self.run,
        }


async def evaluate(
    name: str,
    envs: Sequence[Environment],
    policy: Policy,
    store: Store,
    plan: EvalPlan,
    *,
    on_rollout: Callable[[Trajectory], None] | None = None,
) -> EvalReport:
    """Evaluate ``policy``; every rollout is stored under a new run ``name``.

    Rollouts without a score count in ``unscored`` by status, never as wrong answers. Raises ConfigError when nothing
    could be scored at all, with the most frequent reason.
    """
    by_id = {env.spec.id: env for env in envs}
    run = store.begin_run(name, "eval", {"policy": policy.name, **vars(plan), UNCERTIFIED: uncertified(envs)})
    greedy_tasks = spread(envs, plan.split, plan.seed, plan.tasks)
    groups: dict[int, list[Group]] = {}
    for step, tasks, size, temperature in (
        (GREEDY_STEP, greedy_tasks, 1, 0.0),
        (SAMPLED_STEP, greedy_tasks[: plan.sampled_tasks], plan.k, plan.temperature),
    ):
        plans = [plan_group(run, plan.seed, step, at, task, size) for at, task in enumerate(tasks)]
        params = SamplingParams(temperature, plan.max_tokens)
        groups[step] = await run_groups(by_id, plans, policy, params, on_rollout=on_rollout)
        store.append(run, groups[step])
    store.end_run(run, "finished")
    return _report(run, groups[GREEDY_STEP], groups[SAMPLED_STEP], plan.k)


def _report(run: str, greedy: list[Group], sampled: list[Group], k: int) -> EvalReport:
    right: dict[str, list[bool]] = defaultdict(list)
    unscored: dict[str, int] = defaultdict(int)
    reason = ""
    for trajectory in (t for group in (*greedy, *sampled) for t in group.trajectories):
        if trajectory.reward is None:
            unscored[trajectory.status.value] += 1
            reason = trajectory.error or reason
    for group in greedy:
        right[group.task.env] += [t.reward == 1.0 for t in group.trajectories if t.reward is not None]
    verdicts = [verdict for env in right.values() for verdict in env]
    if not verdicts:
        raise ConfigError(
            f"evaluation {run}: not one of {len(greedy)} rollouts could be scored; the last said: {reason}"
        )
    return EvalReport(
        run,
        Proportion(sum(verdicts), len(verdicts)),
        {env: Proportion(sum(each), len(each)) for env, each in sorted(right.items()) if each},
        {at: fmean(estimates) for at in (1, k) if (estimates := _estimates(sampled, at))},
        dict(unscored),
    )


def _estimates(groups: list[Group], k: int) -> list[float]:
    estimates = []
    for group in groups:
        scored = [t.reward == 1.0 for t in group.trajectories if t.reward is not None]
        if len(scored) >= k:
            estimates.append(pass_at_k(len(scored), sum(scored), k))
    return estimates
