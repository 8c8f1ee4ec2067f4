"""Files of a bundle, read with bounds: whoever wrote them is not trusted to have kept them small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from palestra.errors import BundleError

LARGEST_BYTES = 64 << 20


def read_text(file: Path, largest: int = LARGEST_BYTES) -> str:
    """The text of ``file``. Raises BundleError naming the file: absent, no regular file, too large, not UTF-8."""
    try:
        if file.is_symlink() or not file.is_file():
            raise BundleError(f"{file}: is missing, or is no plain file")
        size = file.stat().st_size
        if size > largest:
            raise BundleError(f"{file}: has {size} bytes, at most {largest} are read")
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise BundleError(f"{file}: must be UTF-8 text, got byte {byte:#04x} at {error.start}") from None
    except OSError as error:
        raise BundleError(f"{file}: cannot be read: {error.strerror}") from None


def read_objects(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """("file:line", object) of each line of a JSON Lines file; blank lines are skipped.

    Raises BundleError naming the line that is no JSON object."""
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            place = f"{file}:{number}"
            found = _json(line, place)
            if not isinstance(found, dict):
                raise BundleError(f"{place}: must be a JSON object, got {type(found).__name__}")
            yield place, found


def read_json(file: Path) -> Any:
    """The JSON value in ``file``. Raises BundleError."""
    return _json(read_text(file), str(file))


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise BundleError(f"{place}: is nested too deeply") from None
    except ValueError as error:
        raise BundleError(f"{place}: is not JSON: {error}") from None


def texts(place: str, found: dict[str, Any], *names: str) -> list[str]:
    """The texts under ``names``. Raises BundleError where one is missing, or no text."""
    for name in names:
        if not isinstance(found.get(name), str):
            got = type(found[name]).__name__ if name in found else "nothing"
            raise BundleError(f"{place}: {name!r} must be a text, got {got}")
    return [found[name] for name in names]
