"""Opening a database: SQLite's settings, transactions that say what they are for, and errors in one sentence."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from palestra.errors import StoreError

BUSY_S = 30.0
"""How long a writer waits for another before it gives up."""
HEADER = b"SQLite format 3\0"
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs")
"""File systems on which SQLite's locks and shared memory do not hold between machines."""
REASONS = {
    "file is not a database": "is no SQLite database; name another file, or restore it from a copy",
    "malformed": "is damaged; restore it from a copy (sqlite3's .recover saves what can be read)",
    "disk is full": "cannot grow: the disk, or its size limit, is full; free space and repeat, nothing half-done stays",
    "disk I/O error": "cannot be read or written: the disk reports an error; check it, then run palestra store verify",
    "readonly": "is read-only; change its permissions, or copy it to where you may write",
    "unable to open": "cannot be opened or made here; check that the folder exists and that you may write in it",
    "locked": "stayed locked by another writer; wait for it to end, or end it, and repeat",
    "no such column": "has tables of another shape than this Palestra's; name another file",
    "no such table": "has tables of another shape than this Palestra's; name another file",
}


def is_url(where: str | Path) -> bool:
    return isinstance(where, str) and "://" in where


def shown(where: str | Path) -> str:
    """The store's name as it may be printed: of a URL, without its password."""
    if not is_url(where):
        return str(where)
    try:
        return repr(make_url(str(where)))
    except SQLAlchemyError:
        return "database"


def open_database(where: str | Path, *, create: bool, max_mib: int | None, busy_s: float) -> Engine:
    """An engine on an SQLite file (a path, or sqlite:///PATH) or on what another SQLAlchemy URL names."""
    if not is_url(where):
        return open_sqlite(Path(where), create=create, max_mib=max_mib, busy_s=busy_s)
    try:
        url = make_url(str(where))
    except SQLAlchemyError:
        raise StoreError("store with :// in its name: is no database URL; name a file, or sqlite:///FILE") from None
    if url.get_backend_name() != "sqlite":
        return open_url(url)
    if not url.database or url.database == ":memory:":
        raise StoreError(
            f"store {str(where)!r}: a store must outlive its process; name a file, as sqlite:///palestra.db"
        )
    return open_sqlite(Path(url.database), create=create, max_mib=max_mib, busy_s=busy_s)


def open_sqlite(path: Path, *, create: bool, max_mib: int | None, busy_s: float) -> Engine:
    """An engine on the SQLite file at ``path``. StoreError where there is none (unless ``create``) or it is none."""
    if max_mib is not None and max_mib < 1:
        raise StoreError(f"store {path}: its size limit must be at least 1 MiB, got {max_mib}")
    try:
        _require_sqlite(path, create)
        refuse_network(path)
    except OSError as error:
        raise StoreError(f"store {path}: cannot be reached: {error.strerror}; name another file") from None
    except (RuntimeError, ValueError) as error:  # a loop of links; a NUL in the name
        raise StoreError(f"store {path}: cannot be reached: {error}; name another file") from None
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": busy_s, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        cursor = connection.cursor()
        for pragma in ("synchronous = FULL", "foreign_keys = ON"):
            cursor.execute(f"PRAGMA {pragma}")
        if _may_change(cursor):
            cursor.execute("PRAGMA journal_mode = WAL")
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


WRITERS = 0x70616C65
"""The advisory lock of writers, "pale"."""


def take_turn(connection: Connection) -> None:
    """Wait until this transaction is the only one that writes: groups are numbered in the order of their arrival, and a
    lease is given once. SQLite's ``BEGIN IMMEDIATE`` has done so already."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")


def size(engine: Engine) -> int:
    """Bytes of an SQLite file and its write-ahead log."""
    path = str(engine.url.database)
    return sum(os.stat(file).st_size for file in (path, f"{path}-wal") if os.path.exists(file))


def _require_sqlite(path: Path, create: bool) -> None:
    if not path.exists():
        if not create:
            raise StoreError(f"store {path}: no such file; a rollout makes one, or name another with --store")
        if not path.parent.is_dir():
            raise StoreError(f"store {path}: the folder {path.parent} does not exist; make it first")
        return
    if path.is_dir():
        raise StoreError(f"store {path}: is a folder; name a file, as {path / 'palestra.db'}")
    if not path.is_file():  # opening a pipe would wait for its other end
        raise StoreError(f"store {path}: is no regular file; name another")
    head = _head(path)
    if not head and not create:
        raise StoreError(f"store {path}: is an empty file, so nothing was ever kept in it; remove it, or name another")
    if head and head != HEADER:
        raise StoreError(f"store {path}: {REASONS['file is not a database']}")


def _may_change(cursor: Any) -> bool:
    """Whether the database is empty or Palestra's: the journal's kind is kept in the file, and others' are theirs."""
    names = {name for (name,) in cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names or "trajectories" in names


def open_url(url: URL) -> Engine:
    """An engine on any database that SQLAlchemy reaches by ``url``."""
    try:
        return create_engine(url)
    except ModuleNotFoundError as error:
        raise StoreError(f"store {url!r}: its driver is not installed: {error}; pip install {error.name}") from None
    except SQLAlchemyError as error:
        raise StoreError(f"store {url!r}: cannot be reached: {error}; name a file, or another URL") from None


def refuse_network(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Raises StoreError where ``path`` lies on a network file system; passes where that cannot be told."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return  # no such list on this system
    kind = file_system(path.resolve(), lines)
    if kind in NETWORK:
        raise StoreError(
            f"store {path}: lies on a network folder ({kind}), where two writers would damage an SQLite file; "
            "put it on a local disk, or name a PostgreSQL database by its URL"
        )


def file_system(path: Path, mountinfo: Sequence[str]) -> str:
    """The type of the file system that holds ``path``: that of the longest mount point above it, the last if several.

    A line of mountinfo: id parent device root MOUNT-POINT options… - TYPE source options; a space is \\040.
    """
    longest, kind = -1, ""
    for line in mountinfo:
        before, _, after = line.partition(" - ")
        point = Path(before.split()[4].replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind = len(point.parts), after.split()[0]
    return kind


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Any error of the database as a StoreError that names the store and the way out."""
    try:
        yield
    except StoreError as error:
        message = str(error)
        raise StoreError(message if message.startswith("store ") else f"store {where}: {message}") from None
    except (DBAPIError, sqlite3.Error) as error:  # the second from our own PRAGMAs, which SQLAlchemy does not wrap
        told = str(error.orig if isinstance(error, DBAPIError) else error)
        reason = next((reason for key, reason in REASONS.items() if key in told), f"failed: {told}")
        raise StoreError(f"store {where}: {reason}") from error
    except UnicodeEncodeError as error:  # from the driver, for a parameter
        raise StoreError(
            f"store {where}: no database keeps a lone surrogate ({error.object!a}) in an id, a name or a path; "
            "replace it"
        ) from None
    except OverflowError as error:
        raise StoreError(f"store {where}: cannot keep an integer beyond 64 bits: {error}; make it smaller") from None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER))
    except OSError as error:
        raise StoreError(f"store {path}: cannot be read: {error.strerror}; check its permissions") from None
