"""palestra rollout"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.common import AsJson, emit


def rollout(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE", help="Bundles, or folders of bundles.")],
    model: Annotated[str, typer.Option("--model", help="scripted:gold|null|echo, native:tiny, or native:PATH.")],
    name: Annotated[str, typer.Option("--name", help="Name of the run in the store.")] = "rollout",
    store: Annotated[Path, typer.Option("--store", help="The store; made where there is none.")] = Path("palestra.db"),
    split: Annotated[str, typer.Option("--split", help="Of which the tasks are.")] = "train",
    tasks: Annotated[int, typer.Option("--tasks", min=1, help="Tasks over all environments.")] = 256,
    n: Annotated[int, typer.Option("--n", min=1, help="Rollouts of each task.")] = 1,
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="0 is greedy.")] = 1.0,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Sampled tokens per policy call.")] = 40,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Rollouts alive at once.")] = 1024,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Fixes tasks, samples and new weights.")] = 0,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of a native model.")] = 2,
    allow_uncertified: Annotated[bool, typer.Option("--allow-uncertified", help="Run void environments too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a policy in environments, grade what it does, and keep every token of it in the store.

    Example: palestra rollout envs --model scripted:gold --tasks 1000 --store palestra.db
    """
    import asyncio

    from palestra.cli.progress import progress
    from palestra.envs.bundle import load_environments
    from palestra.models.load import load_policy
    from palestra.rollouts.run import RolloutPlan, rate_of, roll_out
    from palestra.store import Store

    envs = load_environments(bundles, allow_uncertified=allow_uncertified)
    policy = load_policy(model, seed=seed, threads=threads)
    plan = RolloutPlan(split, tasks, n, temperature, max_tokens, seed, concurrency)
    with Store.open(store, create=True) as opened, progress("rollout") as step:
        report = asyncio.run(roll_out(name, envs, policy, opened, plan, on_rollout=rate_of(step, tasks * n)))
    reward = "none scored" if report.reward is None else f"mean score {report.reward:.3f}"
    look = f"palestra store ls --store {store} --run {report.run}"
    text = f"{report.rollouts} rollouts, {reward}, {dict(report.statuses)}; {look}"
    emit(as_json, {**report.to_plain(), "store": str(store)}, text)
