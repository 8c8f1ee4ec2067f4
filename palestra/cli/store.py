"""palestra store …"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palestra.cli.common import AsJson, emit
from palestra.cli.progress import progress

if TYPE_CHECKING:
    from palestra.store import Store
    from palestra.types import Score, Trajectory, Turn, Unscored

app = typer.Typer(help="Look into a store.", no_args_is_help=True, rich_markup_mode=None)
Where = Annotated[str, typer.Option("--store", help="The store: a file, or a database's URL.")]
HERE = "palestra.db"


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
        problems, name = opened.verify(), opened.where
    emit(as_json, {"problems": problems}, "\n".join(problems) or f"{name} holds: nothing is wrong with it")
    raise typer.Exit(1 if problems else 0)


@app.command("query")
def query(
    sql: Annotated[str | None, typer.Argument(metavar="SQL", help="One SELECT.")] = None,
    store: Where = HERE,
    tables: Annotated[bool, typer.Option("--tables", help="List the tables and their columns instead.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows at most.")] = 1000,
    timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds at most.")] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Ask a store in SQL. The store cannot be changed this way.

    Example: palestra store query "SELECT status, count(*) FROM trajectories GROUP BY 1" --store palestra.db
    """
    from palestra.errors import ConfigError
    from palestra.store import Store
    from palestra.store.schema import tables as schema

    if tables:
        listed = {name: [column.name for column in table.columns] for name, table in schema.tables.items()}
        return emit(as_json, {"tables": listed}, "\n".join(f"{n}: {', '.join(c)}" for n, c in listed.items()))
    if sql is None:
        raise ConfigError("no query was given: name one SELECT, or ask for --tables")
    with Store.open(store) as opened:
        answer = opened.query(sql, limit=limit, timeout_s=timeout)
    rows = [[_cell(value) for value in row] for row in answer.rows]
    lines = ["\t".join(answer.columns), *("\t".join(_printable(str(value)) for value in row) for row in rows)]
    lines += [f"only the first {limit} rows; ask for more with --limit"] if answer.is_cut else []
    emit(as_json, {"columns": list(answer.columns), "rows": rows, "is_cut": answer.is_cut}, "\n".join(lines))


def _cell(value: Any) -> Any:
    return f"{len(value)} bytes" if isinstance(value, (bytes, memoryview)) else value


@app.command("export")
def export(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="jsonl, parquet, atif, chat or preference.")],
    run: Annotated[str, typer.Option("--run", help="The run, by id or name.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write.")],
    store: Where = HERE,
    split: Annotated[str | None, typer.Option("--split", help="Of tasks: train, validation or heldout.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Of the trainer.")] = None,
    status: Annotated[list[str] | None, typer.Option("--status", help="finished, truncated …, or all.")] = None,
    least: Annotated[float | None, typer.Option("--min-reward", min=0, max=1, help="Reward at least.")] = None,
    most: Annotated[float | None, typer.Option("--max-reward", min=0, max=1, help="Reward at most.")] = None,
    redact: Annotated[str, typer.Option("--redact", help="secrets, personal (those too), or nothing.")] = "secrets",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a run's rollouts to a file: whole (jsonl, parquet), for Harbor (atif), or for trainers (chat, preference).

    Example: palestra store export chat --run rl --min-reward 1 --out sft.jsonl --store out/quickstart/palestra.db
    """
    from palestra.errors import ConfigError, nearest
    from palestra.store import Store
    from palestra.store import export as exports

    levels = {"secrets": exports.SECRETS, "personal": {**exports.SECRETS, **exports.PERSONAL}, "nothing": {}}
    if redact not in levels:
        raise ConfigError(f"--redact {redact!r} is unknown, {nearest(redact, levels)}")
    chosen = exports.Selection(run, split, step, exports.statuses(status or []), least, most)
    redaction = exports.Redaction(levels[redact])
    with Store.open(store) as opened, progress("export") as told:
        report = exports.export(opened, format, out, chosen, redaction=redaction, force=force, progress=told)
    line = f"{report.path}: {report.rows} rows of {report.trajectories} rollouts in {report.groups} groups"
    taken = ", ".join(f"{count} × {kind}" for kind, count in report.redacted.items())
    line += f"; redacted {taken}; {report.stripped} rollouts lost their tokens with it" if taken else ""
    emit(as_json, asdict(report), line)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An export in jsonl or parquet.")],
    store: Where = HERE,
    name: Annotated[str | None, typer.Option("--name", help="Of the new run; the file's unless told.")] = None,
    as_json: AsJson = False,
) -> None:
    """Import exported rollouts as a new run; the store is made where there is none.

    Example: palestra store import rollouts.parquet --store other.db
    """
    from palestra.store import Store
    from palestra.store import export as exports

    with Store.open(store, create=True) as opened:
        run, groups = exports.import_groups(opened, file, name=name)
        told = {"run": run, "groups": groups, "store": opened.where}
    emit(as_json, told, f"{run}: {groups} groups")


@app.command("compact")
def compact(store: Where = HERE, as_json: AsJson = False) -> None:
    """Give back the space that is free in a store's file.

    Example: palestra store compact --store palestra.db
    """
    from palestra.store import Store

    with Store.open(store) as opened:
        before, after = opened.compact()
    emit(as_json, {"before_bytes": before, "after_bytes": after}, f"{before:,} bytes before, {after:,} after")


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
