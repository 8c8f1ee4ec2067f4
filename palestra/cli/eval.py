"""palestra eval"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.common import AsJson, emit


def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="native:PATH, native:tiny, or scripted:gold.")],
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE", help="Bundles, or folders of bundles.")],
    name: Annotated[str, typer.Option("--name", help="Name of the run in the store.")] = "eval",
    store: Annotated[Path, typer.Option("--store", help="The store; made where there is none.")] = Path("palestra.db"),
    split: Annotated[str, typer.Option("--split", help="Of which the tasks are.")] = "heldout",
    n: Annotated[int, typer.Option("--n", min=1, help="Tasks answered greedily.")] = 1600,
    sampled: Annotated[int, typer.Option("--sampled", min=0, help="Tasks of these also answered k times.")] = 400,
    k: Annotated[int, typer.Option("--k", min=1, help="Samples of each for pass@k.")] = 8,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Fixes tasks, samples and new weights.")] = 0,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Threads of a native model.")] = 2,
    allow_uncertified: Annotated[bool, typer.Option("--allow-uncertified", help="Use void environments too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure a policy on held-out tasks: greedy accuracy with its 95 % interval, pass@1 and pass@k.

    Example: palestra eval native:out/rl/model envs --n 1600 --k 8
    """
    import asyncio

    from palestra.cli.progress import progress
    from palestra.envs.bundle import load_environments
    from palestra.evals.runner import EvalPlan
    from palestra.evals.runner import evaluate as run_evaluation
    from palestra.models.load import load_policy
    from palestra.rollouts.run import rate_of
    from palestra.store import Store

    envs = load_environments(bundles, allow_uncertified=allow_uncertified)
    policy = load_policy(model, seed=seed, threads=threads)
    plan = EvalPlan(split=split, tasks=n, sampled_tasks=sampled, k=k, seed=seed)
    with Store.open(store, create=True) as opened, progress("eval") as step:
        tell = rate_of(step, n + min(n, sampled) * k)
        report = asyncio.run(run_evaluation(name, envs, policy, opened, plan, on_rollout=tell))
    low, high = report.overall.interval
    lines = [f"{env}  {share.value:.3f}  ({share.successes}/{share.trials})" for env, share in report.by_env.items()]
    lines += [f"pass@{at} {value:.3f}" for at, value in report.pass_at.items()]
    lines.append(
        f"{split} accuracy {report.overall.value:.3f} [{low:.3f}, {high:.3f}] on {report.overall.trials} tasks"
    )
    emit(as_json, report.to_plain(), "\n".join(lines))
