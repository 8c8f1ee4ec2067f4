"""What every command shares: --json, one JSON object on stdout, progress on stderr, exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, NoReturn

import typer

from palestra.errors import PalestraError

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]


def emit(as_json: bool, data: dict[str, Any], text: str) -> None:
    """Print the result of a command: ``data`` as one JSON object, or ``text`` for a person."""
    print(json.dumps(data, ensure_ascii=False) if as_json else text)


def fail(error: PalestraError) -> NoReturn:
    """Say an error in one sentence and leave with its exit code; with --json, as an object on stdout."""
    if "--json" in sys.argv:
        print(json.dumps({"error": str(error), "kind": type(error).__name__}, ensure_ascii=False))
    print(f"palestra: {error}", file=sys.stderr)
    raise SystemExit(error.exit_code)
