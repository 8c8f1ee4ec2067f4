"""palestra train"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.common import AsJson, emit


def train(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="The run's settings.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, as rl.steps=50.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the newest run of that name.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the settings in full and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train a policy: supervised on stored trajectories, or by online RL in environments.

    Example: palestra train recipes/predict-rl.toml --set rl.steps=50 --resume
    """
    import json

    from palestra.config import load_config
    from palestra.train.settings import TrainSettings

    loaded = load_config(TrainSettings, recipe, settings or ())
    if dry_run:
        plain = loaded.model_dump(mode="json")
        emit(as_json, plain, json.dumps(plain, indent=2))
        return
    from palestra.cli.progress import progress
    from palestra.train.start import step_line
    from palestra.train.start import train as run_training

    with progress(loaded.name) as step:
        report = run_training(loaded, resume=resume, on_step=lambda at, of, seen: step(at, of, step_line(seen)))
    text = f"run {report.run}: {report.steps} steps in {report.seconds:.1f} s; model native:{report.model}"
    emit(as_json, report.to_plain(), text)
