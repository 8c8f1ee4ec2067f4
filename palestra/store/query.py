"""Ask a store in SQL, without any way to change it or to reach another file."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from palestra.errors import StoreError

ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
HELP = "palestra store query --tables lists tables and columns"
STEPS = 10_000
"""Virtual-machine instructions between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``is_cut``: there were more rows than were asked for."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    is_cut: bool


def ask(engine: Engine, sql: str, *, limit: int, timeout_s: float) -> Answer:
    """Raises StoreError for SQL that is wrong, would write, holds more than one statement, or takes too long."""
    if engine.dialect.name == "sqlite":
        return _ask_sqlite(Path(str(engine.url.database)), sql, limit, timeout_s)
    return _ask_server(engine, sql, limit, timeout_s)


def _ask_sqlite(path: Path, sql: str, limit: int, timeout_s: float) -> Answer:
    ends = time.monotonic() + timeout_s
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=timeout_s)
    try:
        # Below SQL: neither ATTACH, PRAGMA nor a trigger passes, whatever the text says.
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY)
        connection.set_progress_handler(lambda: time.monotonic() > ends, STEPS)
        cursor = connection.execute(sql)
        if cursor.description is None:
            raise StoreError("the query asks for nothing; begin it with SELECT or WITH")
        return _answer([column[0] for column in cursor.description], cursor.fetchmany(limit + 1), limit)
    except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, ValueError) as error:
        raise StoreError(_why(str(error), timeout_s)) from None
    finally:
        connection.close()


def _why(told: str, timeout_s: float) -> str:
    if any(words in told for words in ("not authorized", "authorization denied", "prohibited")):
        return "the query may only read: SELECT or WITH, over the tables of the store"
    if "interrupted" in told:
        return f"the query took more than {timeout_s:g} s; ask for less, or give it longer with --timeout"
    return f"the query is wrong: {told}; {HELP}"


def _ask_server(engine: Engine, sql: str, limit: int, timeout_s: float) -> Answer:
    """On PostgreSQL: in a read-only transaction, as a prepared statement, of which there can be only one."""
    try:
        with engine.connect() as connection:
            connection.execute(text("SET TRANSACTION READ ONLY"))
            connection.execute(text(f"SET LOCAL statement_timeout = {max(1, int(timeout_s * 1000))}"))
            raw: Any = connection.connection.cursor()
            with raw as cursor:
                cursor.execute(sql, prepare=True)
                if cursor.description is None:
                    raise StoreError("the query asks for nothing; begin it with SELECT or WITH")
                rows = [tuple(row) for row in cursor.fetchmany(limit + 1)]
                return _answer([column.name for column in cursor.description], rows, limit)
    except StoreError:
        raise
    except Exception as error:  # the driver's own, whichever it is: SQLAlchemy does not wrap those of its raw cursor
        told = str(getattr(error, "orig", error)).splitlines()[0]
        raise StoreError(_why_server(told, timeout_s)) from None


def _why_server(told: str, timeout_s: float) -> str:
    if "read-only transaction" in told:
        return "the query may only read: SELECT or WITH, over the tables of the store"
    if "statement timeout" in told:
        return f"the query took more than {timeout_s:g} s; ask for less, or give it longer with --timeout"
    return f"the query is wrong: {told}; {HELP}"


def _answer(columns: list[str], rows: list[tuple[Any, ...]], limit: int) -> Answer:
    return Answer(tuple(columns), rows[:limit], len(rows) > limit)
