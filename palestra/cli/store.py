"""palestra store …"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palestra.cli.common import AsJson, emit

if TYPE_CHECKING:
    from palestra.store import Store
    from palestra.types import Score, Trajectory, Turn, Unscored

app = typer.Typer(help="Look into a store.", no_args_is_help=True, rich_markup_mode=None)
Where = Annotated[Path, typer.Option("--store", help="The store.")]
HERE = Path("palestra.db")


@app.command("ls")
def ls(
    store: Where = HERE,
    run: Annotated[str | None, typer.Option("--run", help="List this run's trajectories instead.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Trajectories to list.")] = 50,
    offset: Annotated[int, typer.Option("--offset", min=0, help="Trajectories to pass over first.")] = 0,
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
            _list_trajectories(opened, run, limit, offset, as_json)


def _list_runs(opened: Store, as_json: bool) -> None:
    counts = opened.counts()
    runs = [{**vars(run), "config": dict(run.config)} for run in opened.runs()]
    lines = [
        f"{run['id']}  {run['kind']}  {run['status']}  {run['groups']} groups, {run['trajectories']} trajectories"
        for run in runs
    ]
    lines.append(", ".join(f"{count} {name}" for name, count in counts.items()))
    emit(as_json, {"counts": counts, "runs": runs}, "\n".join(lines))


def _list_trajectories(opened: Store, run: str, limit: int, offset: int, as_json: bool) -> None:
    found = opened.find_run(run)
    page = opened.trajectories(found.id, limit=limit, offset=offset)
    lines = [f"{t.id}  {t.step}  {t.env}  {t.status}  {_scored(t.reward)}  {ascii(t.said)[:60]}" for t in page]
    end = offset + len(page)
    if page:
        lines.append(f"{offset + 1} to {end} of {found.trajectories} of {found.id}")
        lines[-1] += f"; the next ones: --offset {end}" if end < found.trajectories else ""
    else:
        lines.append(f"nothing from {offset + 1} on; it has {found.trajectories} trajectories: {found.id}")
    data = {"run": found.id, "trajectories": [vars(t) for t in page], "total": found.trajectories}
    emit(as_json, data, "\n".join(lines))


def _scored(reward: float | None) -> str:
    return "unscored" if reward is None else f"{reward:g}"


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
        "metrics": _summary(metrics),
    }
    emit(as_json, data, json.dumps(data, indent=1, ensure_ascii=False))


def _summary(metrics: Sequence[tuple[int, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Of each metric: its first and last value, the least and the greatest, and how many steps have it."""
    by_name: dict[str, list[float]] = {}
    for _, values in metrics:
        for name, value in values.items():
            by_name.setdefault(name, []).append(value)
    return {
        name: {"first": v[0], "last": v[-1], "min": min(v), "max": max(v), "steps": len(v)}
        for name, v in sorted(by_name.items())
    }


def _show_trajectory(found: Trajectory, tokens: bool, as_json: bool) -> None:
    from palestra.types import to_plain

    plain = to_plain(found)
    lines = [f"{found.id}: {found.status}, {_scored(found.reward)}, {found.seconds:.2f} s"]
    lines.append(f"task: {_printable(found.task.id)} of {found.task.env}, {found.task.split}")
    lines += [f"{message.role}: {_printable(message.content)}" for message in found.transcript]
    lines.append(_verdict(found.score))
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


def _verdict(score: Score | Unscored) -> str:
    from palestra.types import Unscored

    if isinstance(score, Unscored):
        return f"unscored: {_printable(score.reason)}"
    parts = ", ".join(f"{name} {value:g}" for name, value in score.components.items())
    words = [f"score {score.value:g}", f" ({parts})" if parts else "", f": {score.evidence}" if score.evidence else ""]
    return _printable("".join(words))


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
