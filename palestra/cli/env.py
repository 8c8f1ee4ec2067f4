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
    from palestra.envs.bundle import find_bundles, read_facts
    from palestra.gate import verify

    rows = []
    for path in find_bundles(bundles):
        facts = read_facts(path)
        certified = verify(path)[0].valid
        rows.append({"id": facts.symbol, "path": str(path), "splits": dict(facts.splits), "certified": certified})
    lines = [f"{row['id']}  {row['splits']}  {'certified' if row['certified'] else 'not certified'}" for row in rows]
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

    from palestra.envs.bundle import load_environment, read_facts

    environment = load_environment(bundle, allow_uncertified=True)
    tasks = list(islice(environment.tasks(split, seed), count))
    shown = [{"id": t.id, "prompt": t.messages[-1].content, "gold": environment.gold(t)} for t in tasks]
    facts = asdict(read_facts(bundle))
    lines = [f"{key}: {value}" for key, value in facts.items()]
    lines += [f"{task['prompt']}  ->  {task['gold']}" for task in shown]
    emit(
        as_json,
        {"id": environment.spec.id, "version": environment.spec.version, **facts, "tasks": shown},
        "\n".join(lines),
    )
