"""palestra forge …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.common import AsJson, emit

app = typer.Typer(help="Make environments.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def forge() -> None:
    """Make environments: from source code."""


@app.command("code")
def code(
    sources: Annotated[list[str], typer.Argument(metavar="SRC", help="Installed packages, or paths with a / in them.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder of bundles to write; replaced if it is one.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--kind", help="predict: show a call, ask for its result; implement: write a body; repair: find a bug."
        ),
    ] = "predict",
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Environments per package at most.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Fixes inputs and choice.")] = 0,
    cases: Annotated[int, typer.Option("--cases", min=200, max=100_000, help="Problems wanted per function.")] = 3000,
    as_json: AsJson = False,
) -> None:
    """Forge environments from the source of real packages; everything of them that runs, runs in a sandbox.

    Example: palestra forge code inflection humanize --out envs
    """
    from dataclasses import asdict

    from palestra.cli.progress import progress
    from palestra.errors import ConfigError, nearest
    from palestra.forge.code import forge_code
    from palestra.forge.code.tasks import MAKERS

    if kind in MAKERS:
        return _tasks(sources, out, kind, limit, seed, as_json)
    if kind != "predict":
        raise ConfigError(f"--kind {kind!r}: unknown, {nearest(kind, ['predict', *MAKERS])}")
    with progress("forge") as step:
        report = forge_code(sources, out, limit=limit, seed=seed, cases=cases, progress=step)
    lines = [f"{f.symbol}  {f.cases} problems, {f.outcomes} outcomes" for f in report.forged]
    lines += [f"left out: {count} × {reason}" for reason, count in report.reasons().items()]
    lines.append(f"{len(report.forged)} environments in {out}, {report.seconds:.1f} s; next: palestra gate check {out}")
    emit(as_json, {**asdict(report), "reasons": report.reasons()}, "\n".join(lines))


def _tasks(sources: list[str], out: Path, kind: str, limit: int | None, seed: int, as_json: bool) -> None:
    import asyncio
    from dataclasses import asdict

    from palestra.cli.progress import progress
    from palestra.forge.code.tasks import forge_tasks

    with progress("forge") as step:
        report = asyncio.run(forge_tasks(sources, out, kind, limit=limit, seed=seed, progress=step))
    lines = [
        f"{task.id}  {task.hidden} hidden calls, {task.killed} of {task.mutants} mutants" for task in report.admitted
    ]
    lines += [f"left out: {count} × {reason}" for reason, count in report.reasons().items()]
    strength = "" if report.strength is None else f", {report.strength:.1%} of their mutants told"
    lines.append(
        f"{report.seen} functions, {report.candidates} candidates, {len(report.admitted)} tasks admitted by the gate"
        f"{strength}, in {out}, {report.seconds:.1f} s"
    )
    emit(as_json, {**asdict(report), "refused": report.reasons(), "why": report.refused}, "\n".join(lines))
