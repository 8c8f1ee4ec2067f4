"""Export a selection of a store, and import what was exported whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palestra.errors import StoreError, nearest
from palestra.files import atomic_file
from palestra.store.export import lossless, parquet
from palestra.store.export.atif import atif_rows
from palestra.store.export.redact import Redaction
from palestra.store.export.selection import Selection
from palestra.store.export.training import chat_rows, preference_rows
from palestra.store.rows import RunInfo
from palestra.store.store import Store
from palestra.types import Group

Rows = Callable[[Group, RunInfo], Iterable[dict[str, Any]]]
GROUPS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class ExportReport:
    """``redacted`` counts what was taken out, by kind; ``stripped`` the rollouts that lost their tokens with it."""

    path: str
    format: str
    groups: int
    trajectories: int
    rows: int
    redacted: dict[str, int] = field(default_factory=dict)
    stripped: int = 0


def _lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":"), allow_nan=False).encode() + b"\n")


def _lossless_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("wb") as file:
        file.writelines(map(lossless.to_line, rows))


FORMATS: dict[str, tuple[Rows, Callable[[Path, Iterable[dict[str, Any]]], None]]] = {
    "jsonl": (lossless.rows_of, _lossless_lines),
    "parquet": (lossless.rows_of, parquet.write),
    "atif": (atif_rows, _lines),
    "chat": (lambda group, run: chat_rows(group), _lines),
    "preference": (lambda group, run: preference_rows(group), _lines),
}
"""By name: what becomes of a group, and how rows are written. jsonl and parquet hold all of it, and can be imported."""


def export(
    store: Store,
    format: str,
    out: Path,
    chosen: Selection,
    *,
    redaction: Redaction | None = None,
    force: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, words: None,
) -> ExportReport:
    """Write the chosen rollouts to ``out``, whole or not at all. ``redaction`` takes out secrets unless told otherwise;
    one with no patterns takes out nothing. ``progress`` is told groups done, groups of the run, and words.

    Raises StoreError: an unknown format, nothing chosen, ``out`` exists (without ``force``), a value that the format
    cannot hold. OutputError: ``out`` cannot be written."""
    if format not in FORMATS:
        raise StoreError(f"export format {format!r} is unknown, {nearest(format, FORMATS)}")
    if out.exists() and not force:
        raise StoreError(f"{out}: exists already; name another file, or add --force to replace it")
    rows_of, write = FORMATS[format]
    redaction = Redaction() if redaction is None else redaction
    run = store.find_run(chosen.run)
    count = {"groups": 0, "trajectories": 0, "rows": 0}

    def rows() -> Iterator[dict[str, Any]]:
        for group in chosen.groups(store):
            count["groups"] += 1
            count["trajectories"] += len(group.trajectories)
            for row in rows_of(redaction.group(group), run):
                count["rows"] += 1
                yield row
            progress(count["groups"], run.groups, f"{count['rows']} rows")

    with atomic_file(out) as fresh:
        try:
            write(fresh, rows())
        except ValueError as error:  # a log-probability that is no finite number, where JSON has no word for it
            raise StoreError(f"{out}: {format} cannot hold a value of these rollouts: {error}; export jsonl") from None
        if not count["rows"]:
            raise StoreError(f"{out}: nothing was written: {_nothing(format, chosen, count['trajectories'])}")
    return ExportReport(str(out), format, **count, redacted=dict(redaction.found), stripped=redaction.stripped)


def _nothing(format: str, chosen: Selection, trajectories: int) -> str:
    if trajectories:
        return f"none of the {trajectories} chosen rollouts makes a row of format {format}"
    return f"no rollout of run {chosen.run} is of that split, step, status and reward; ask for less"


def import_groups(store: Store, path: Path, *, name: str | None = None) -> tuple[str, int]:
    """Import a jsonl or parquet export as a new, finished run of kind "rollout"; its id, and the number of groups.

    Everything is read and checked before anything is kept. Ids stay as they are, so importing into the store that the
    rollouts came from is refused. Raises StoreError."""
    if not path.is_file():
        raise StoreError(f"{path}: no such file; name an export in jsonl or Parquet")
    known = store.known_groups([group.id for group in _read(path)])
    if known:
        raise StoreError(f"{path}: group {min(known)} is in this store already; import into another store")
    run = store.begin_run(name or path.stem, "rollout", {"imported": path.name})
    count = 0
    try:
        for batch in _batches(_read(path)):
            store.append(run, batch)
            count += len(batch)
    except BaseException:
        store.end_run(run, "failed")
        raise
    store.end_run(run, "finished")
    return run, count


def _read(path: Path) -> Iterator[Group]:
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        yield from lossless.groups_of(parquet.read(path))
    else:
        with path.open("rb") as file:
            yield from lossless.groups_of(lossless.from_lines(file))


def _batches(groups: Iterable[Group]) -> Iterator[list[Group]]:
    batch: list[Group] = []
    for group in groups:
        batch.append(group)
        if len(batch) == GROUPS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
