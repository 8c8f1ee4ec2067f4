"""Opening a database: SQLite's settings, transactions that say what they are for, and errors in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from palestra.errors import StoreError

BUSY_S = 30.0
"""How long a writer waits for another before it gives up."""
HEADER = b"SQLite format 3\0"
REASONS = {
    "file is not a database": "is no SQLite database; name another file, or restore it from a copy",
    "malformed": "is damaged; restore it from a copy (sqlite3's .recover saves what can be read)",
    "disk is full": "cannot grow: the disk, or its size limit, is full; free space and repeat, nothing half-done stays",
    "disk I/O error": "cannot be read or written: the disk reports an error; check it, then run palestra store verify",
    "readonly": "is read-only; change its permissions, or copy it to where you may write",
    "unable to open": "cannot be opened or made here; check that the folder exists and that you may write in it",
    "locked": f"was locked by another writer for {BUSY_S:.0f} s; wait for it to end, or end it",
    "no such column": "has tables of another shape than this Palestra's; name another file",
}


def is_url(where: str | Path) -> bool:
    return isinstance(where, str) and "://" in where


def open_sqlite(path: Path, *, create: bool, max_mib: int | None) -> Engine:
    """An engine on the SQLite file at ``path``. StoreError where there is none (unless ``create``) or it is none."""
    if path.is_dir():
        raise StoreError(f"store {path}: is a folder; name a file, as {path / 'palestra.db'}")
    if not path.exists():
        if not create:
            raise StoreError(f"store {path}: no such file; a rollout makes one, or name another with --store")
        if not path.parent.is_dir():
            raise StoreError(f"store {path}: the folder {path.parent} does not exist; make it first")
    elif (head := _head(path)) and head != HEADER:
        raise StoreError(f"store {path}: {REASONS['file is not a database']}")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_S, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        cursor = connection.cursor()
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            cursor.execute(f"PRAGMA {pragma}")
        if max_mib is not None:
            page = cursor.execute("PRAGMA page_size").fetchone()[0]
            cursor.execute(f"PRAGMA max_page_count = {max_mib * (1 << 20) // page}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes the lock at once: a transaction that turns from reading to writing could deadlock.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def open_url(url: str) -> Engine:
    """An engine on any database that SQLAlchemy reaches by ``url``."""
    try:
        return create_engine(url)
    except (SQLAlchemyError, ModuleNotFoundError) as error:
        raise StoreError(f"store {url!r}: cannot be reached: {error}") from None


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Any error of the database as a StoreError that names the store and the way out."""
    try:
        yield
    except StoreError as error:
        message = str(error)
        raise StoreError(
            message if message.startswith(("store ", "run ", "rollout ")) else f"store {where}: {message}"
        ) from None
    except DBAPIError as error:
        told = str(error.orig)
        reason = next((reason for key, reason in REASONS.items() if key in told), f"failed: {told}")
        raise StoreError(f"store {where}: {reason}") from error


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER))
    except OSError as error:
        raise StoreError(f"store {path}: cannot be read: {error.strerror}; check its permissions") from None
