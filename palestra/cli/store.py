"""palestra store …"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palestra.cli.common import AsJson, emit

if TYPE_CHECKING:
    from palestra.store import Store
    from palestra.types import Trajectory, Turn

app = typer.Typer(help="Look into a store.", no_args_is_help=True, rich_markup_mode=None)
Where = Annotated[Path, typer.Option("--store", help="The store.")]
HERE = Path("palestra.db")


@app.command("ls")
def ls(
    store: Where = HERE,
    run: Annotated[str | None, typer.Option("--run", help="List this run's trajectories instead.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Trajectories to list.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the runs of a store with their counts, or the trajectories of one run.

    Example: palestra store ls --store out/quickstart/palestra.db --run rl
    """
    from palestra.store import Store

    with Store.open(store) as opened:
        if run is None:
            _list_runs(opened, as_json)
        else:
            _list_trajectories(opened, run, limit, as_json)


def _list_runs(opened: Store, as_json: bool) -> None:
    counts = opened.counts()
    runs = [{**vars(run), "config": dict(run.config)} for run in opened.runs()]
    lines = [
        f"{run['id']}  {run['kind']}  {run['status']}  {run['groups']} groups, {run['trajectories']} trajectories"
        for run in runs
    ]
    lines.append(", ".join(f"{count} {name}" for name, count in counts.items()))
    emit(as_json, {"counts": counts, "runs": runs}, "\n".join(lines))


def _list_trajectories(opened: Store, run: str, limit: int, as_json: bool) -> None:
    from itertools import islice

    found = opened.find_run(run)
    made = ((group.step, made) for group in opened.groups(found.id) for made in group.trajectories)
    rows = [
        {"id": t.id, "step": step, "env": t.task.env, "status": t.status.value, "score": t.reward, "said": _said(t)}
        for step, t in islice(made, limit)
    ]
    lines = [
        f"{row['id']}  {row['step']}  {row['env']}  {row['status']}  {row['score']}  {row['said']}" for row in rows
    ]
    lines.append(f"{len(rows)} of {found.trajectories} trajectories of {found.id}")
    emit(as_json, {"run": found.id, "trajectories": rows, "total": found.trajectories}, "\n".join(lines))


@app.command("show")
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="A run's name or id, or a trajectory's id or its beginning.")],
    store: Where = HERE,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Every sampled token, with log-probability and version.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a run (settings, checkpoints, last metrics) or a trajectory (task, what was said, score, tokens).

    Example: palestra store show 3fa2c81d90b1e47c-0 --tokens --store out/quickstart/palestra.db
    """
    from palestra.store import Store

    with Store.open(store) as opened:
        if any(id in (run.id, run.name) for run in opened.runs()):
            _show_run(opened, id, as_json)
        else:
            _show_trajectory(opened.trajectory(id), tokens, as_json)


def _show_run(opened: Store, name: str, as_json: bool) -> None:
    import json

    found = opened.find_run(name)
    metrics = opened.metrics(found.id)
    data: dict[str, Any] = {
        **vars(found),
        "config": dict(found.config),
        "counts": opened.counts(found.id),
        "checkpoints": [vars(checkpoint) for checkpoint in opened.checkpoints(found.id)],
        "last_step": metrics[-1][0] if metrics else None,
        "last_metrics": metrics[-1][1] if metrics else {},
    }
    emit(as_json, data, json.dumps(data, indent=1, ensure_ascii=False))


def _show_trajectory(found: Trajectory, tokens: bool, as_json: bool) -> None:
    from palestra.types import to_plain

    plain = to_plain(found)
    lines = [f"{found.id}: {found.task.env}, {found.status}, score {found.reward}"]
    lines += [f"{message.role}: {_printable(message.content)}" for message in found.transcript]
    lines.append(f"score: {plain['score']}")
    if found.error:
        lines.append(f"error: {_printable(found.error)}")
    for at, turn in enumerate(found.turns):
        ids = turn.completion.ids
        lines.append(
            f"turn {at}: {len(turn.prompt_ids)} prompt tokens, {len(ids)} sampled, {turn.completion.finish_reason}"
        )
        lines += _token_lines(turn) if tokens else []
    emit(as_json, plain, "\n".join(lines))


@app.command("verify")
def verify(store: Where = HERE, as_json: AsJson = False) -> None:
    """Check a store: hashes, lengths, links, marks. Exit 1 when something does not hold.

    Example: palestra store verify --store palestra.db
    """
    from palestra.store import Store

    with Store.open(store) as opened:
        problems = opened.verify()
    emit(as_json, {"problems": problems}, "\n".join(problems) or f"{store} holds: nothing is wrong with it")
    raise typer.Exit(1 if problems else 0)


def _said(trajectory: Trajectory) -> str:
    last = trajectory.transcript[-1] if trajectory.transcript else None
    return ascii(last.content)[:60] if last is not None and last.role == "assistant" else ""


def _printable(text: str) -> str:
    """As it stands but for what a terminal would obey or could not encode: a model may have written anything."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else ascii(sign)[1:-1] for sign in text)


def _token_lines(turn: Turn) -> list[str]:
    sampled = turn.completion
    logprobs = sampled.logprobs or (None,) * len(sampled.ids)
    return [
        f"  {token:>6}  {_shown(token)}  {'none' if value is None else f'{value:.5f}':>10}  version {version}"
        for token, value, version in zip(sampled.ids, logprobs, sampled.versions, strict=True)
    ]


def _shown(token: int) -> str:
    """A byte as a person reads it; ids from 256 are marks."""
    return f"{chr(token)!a:<8}" if token < 256 else "(mark)  "
