"""palestra quickstart"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palestra.cli.common import AsJson, emit


def quickstart(
    out: Annotated[Path, typer.Option("--out", help="Folder of the job; replaced if it is one.")] = Path(
        "out/quickstart"
    ),
    package: Annotated[
        list[str] | None, typer.Option("--package", help="Installed package to forge from; repeat for more.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Fixes everything but the clock.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, as rl.steps=50.")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Every phase, too short to learn anything: for CI.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the job in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the main job: forge from real packages, gate, roll out, warm start, online RL, evaluate, report.

    Example: palestra quickstart --out out/quickstart --package inflection --package humanize
    """
    import json

    from palestra.config import load_config
    from palestra.quickstart.settings import SHORT, QuickstartSettings

    overrides = [*(SHORT if short else ()), f"seed={seed}", *(settings or ())]
    if package:
        overrides.insert(0, f"packages={json.dumps(package)}")
    loaded = load_config(QuickstartSettings, overrides=overrides)
    from palestra.cli.progress import progress
    from palestra.quickstart.job import open_job
    from palestra.quickstart.report import summary, write_report

    job = open_job(loaded, out, progress, resume=resume)
    job.run()
    report = write_report(job)
    emit(as_json, summary(job, report), _text(summary(job, report)))


def _text(result: dict[str, Any]) -> str:
    def share(name: str) -> str:
        found = result[name]
        return f"{found['acc']:.1%}  [{found['lo']:.1%}, {found['hi']:.1%}]"

    phases = ", ".join(f"{name} {value:.0f}" for name, value in result["seconds"].items() if name != "total")
    return "\n".join(
        [
            f"environments  {result['admitted']} admitted, {result['refused']} refused",
            f"before RL     {share('warm')}  held-out greedy accuracy, 95 % interval",
            f"after RL      {share('rl')}",
            f"seconds       {result['seconds']['total']:.0f}  ({phases})",
            f"report        {result['report']}",
        ]
    )
