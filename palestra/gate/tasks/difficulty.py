"""How often named solvers pass a task: a task that everyone passes, or nobody, teaches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palestra.envs.task import TaskEnvironment
from palestra.gate.config import GateConfig
from palestra.gate.subject import Check
from palestra.gate.tasks.workbench import Workbench
from palestra.intervals import Proportion
from palestra.types import SamplingParams

if TYPE_CHECKING:
    from palestra.gate.tasks.checks import Found


async def difficulty(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """The pass rate of each solver, with its 95 % Wilson interval; rollouts that broke off count for nothing.

    Refused where the best solver's rate is not within [solved_least, solved_most]."""
    if not config.solvers:
        return Check("difficulty", True, "no solver was named")
    rates = {name: await _rate(bench, config, name) for name in config.solvers}
    facts = {name: rate.to_plain() if rate else None for name, rate in rates.items()}
    told = "; ".join(f"{name} passes {_words(rate)}" for name, rate in rates.items())
    values = [rate.value for rate in rates.values() if rate]
    if not values:
        return Check("difficulty", False, f"no solver's rollout was scored: {told}; name another", facts=facts)
    if not config.solved_least <= max(values) <= config.solved_most:
        bounds = f"[{config.solved_least:g}, {config.solved_most:g}]"
        return Check("difficulty", False, f"{told}: the best rate must be in {bounds}", facts=facts)
    return Check("difficulty", True, told, facts=facts)


def _words(rate: Proportion | None) -> str:
    if rate is None:
        return "nothing that could be scored"
    low, high = rate.interval
    return f"{rate.successes} of {rate.trials} ({low:.0%} to {high:.0%})"


async def _rate(bench: Workbench, config: GateConfig, name: str) -> Proportion | None:
    # Here, not above: a gate that asks no model needs none of what models need.
    from palestra.models.load import load_policy
    from palestra.rollouts.groups import plan_group, run_groups

    env: Any = TaskEnvironment(bench.facts, bench.sha256)
    plan = plan_group("gate", config.seed, 0, 0, env.task(), config.solver_runs)
    params = SamplingParams(config.solver_temperature, config.solver_tokens)
    policy = load_policy(name, seed=config.seed)
    [group] = await run_groups({env.spec.id: env}, [plan], policy, params, concurrency=4)
    rewards = [made.reward for made in group.trajectories if made.status.is_sound and made.reward is not None]
    return Proportion(sum(reward == 1.0 for reward in rewards), len(rewards)) if rewards else None
