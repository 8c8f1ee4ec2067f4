"""palestra doctor"""

from __future__ import annotations

from palestra.cli.common import AsJson, emit


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can do, and the command that mends each lack.

    Example: palestra doctor --json
    """
    import shutil

    found = shutil.which("bwrap")
    emit(as_json, {"bubblewrap": found}, f"bubblewrap: {found or 'missing: apt-get install bubblewrap'}")
