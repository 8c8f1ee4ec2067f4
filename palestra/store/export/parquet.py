"""Rows of ``lossless`` as Parquet: arrays as arrays, and what has no fixed shape as JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from palestra.errors import StoreError

JSON_COLUMNS = ("task", "score", "transcript")
ROWS_AT_ONCE = 1024


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    pa, pq = _arrow()
    schema = _schema(pa)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(rows):
            plain = [{**row, **{key: json.dumps(row[key]) for key in JSON_COLUMNS}} for row in batch]
            try:
                table = pa.Table.from_pylist(plain, schema=schema)
            except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid) as error:
                raise StoreError(f"Parquet cannot hold a value of these rollouts: {error}; export jsonl") from None
            writer.write_table(table)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Raises StoreError for a file that is no Parquet, or has other columns."""
    pa, pq = _arrow()
    try:
        with pq.ParquetFile(path) as file:
            missing = sorted(set(_schema(pa).names) - set(file.schema_arrow.names))
            if missing:
                raise StoreError(f"{path}: is no export of Palestra's: it lacks the column {missing[0]!r}")
            for batch in file.iter_batches(ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    yield {**row, **{key: json.loads(row[key]) for key in JSON_COLUMNS}}
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _batches(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _schema(pa: Any) -> Any:
    ids = pa.list_(pa.int64())
    turn = {"prompt_ids": ids, "ids": ids, "logprobs": pa.list_(pa.float64()), "versions": ids}
    turns = pa.list_(pa.struct({**turn, "finish_reason": pa.string()}))
    names = {"protections": pa.list_(pa.string())}
    text = ("schema", "run", "group", "env", "split", "task", "trajectory", "status", "score", "error", "transcript")
    numbers = {"step": pa.int64(), "index": pa.int64(), "reward": pa.float64(), "seconds": pa.float64()}
    return pa.schema({**{name: pa.string() for name in text}, **numbers, **names, "turns": turns})


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise StoreError("Parquet needs pyarrow, which is not installed; pip install 'palestra[export]'") from None
    return pyarrow, pyarrow.parquet
