"""palestra env …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.common import AsJson, emit

app = typer.Typer(help="Look at environments.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE", help="Bundles, or folders of bundles.")],
    as_json: AsJson = False,
) -> None:
    """List environments: their problems by split, and whether each has a valid certificate.

    Example: palestra env list envs
    """
    from palestra.envs.bundle import PredictFacts, find_bundles, read_facts
    from palestra.gate import verify

    rows = []
    for path in find_bundles(bundles):
        facts = read_facts(path)
        certified = verify(path)[0].valid
        splits = dict(facts.splits) if isinstance(facts, PredictFacts) else {facts.metadata.split: 1}
        rows.append({"id": facts.id, "kind": facts.kind, "path": str(path), "splits": splits, "certified": certified})
    lines = [
        f"{row['id']}  {row['kind']}  {row['splits']}  {'certified' if row['certified'] else 'not certified'}"
        for row in rows
    ]
    emit(as_json, {"environments": rows}, "\n".join(lines))


@app.command("show")
def show(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    split: Annotated[str, typer.Option("--split", help="The split to draw from.")] = "train",
    count: Annotated[int, typer.Option("--count", min=1, max=100, help="Tasks to show.")] = 5,
    seed: Annotated[int, typer.Option("--seed", help="The draw.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show an environment: where it comes from, and some of its tasks with their gold answers.

    Example: palestra env show envs/inflection.camelize
    """
    from dataclasses import asdict
    from itertools import islice

    from palestra.envs.bundle import PredictFacts, load_environment, read_facts

    environment = load_environment(bundle, allow_uncertified=True)
    facts = read_facts(bundle)
    tasks = list(islice(environment.tasks(split, seed), count if isinstance(facts, PredictFacts) else 1))
    if isinstance(facts, PredictFacts):
        told = asdict(facts)
        shown = [{"id": t.id, "prompt": t.messages[-1].content, "gold": environment.gold(t)} for t in tasks]
        lines = [f"{task['prompt']}  ->  {task['gold']}" for task in shown]
    else:
        told = facts.metadata.model_dump(by_alias=True)
        shown = [{"id": t.id, "prompt": t.messages[-1].content} for t in tasks]
        lines = [task["prompt"] for task in shown]
    emit(
        as_json,
        {"id": environment.spec.id, "version": environment.spec.version, **told, "tasks": shown},
        "\n".join([*(f"{key}: {value}" for key, value in told.items()), *lines]),
    )
