"""palestra doctor"""

from __future__ import annotations

from palestra.cli.common import AsJson, emit


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can do, and the command that mends each lack; exit 1 when no local sandbox can run.

    Example: palestra doctor --json
    """
    from dataclasses import asdict

    import typer

    from palestra.sandboxes.abilities import survey

    found = survey()
    lines = []
    for ability in found:
        lines.append(f"{ability.status:7}{ability.name}: {ability.detail}")
        lines += [f"       mend: {ability.mend}"] if ability.mend else []
    emit(as_json, {"abilities": [asdict(ability) for ability in found]}, "\n".join(lines))
    is_able = all(ability.status == "yes" for ability in found if ability.name in ("bubblewrap", "local sandbox"))
    raise typer.Exit(0 if is_able else 1)
