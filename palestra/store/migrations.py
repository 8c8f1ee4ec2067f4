"""Numbered migrations: migration n brings a store from schema version n − 1 to n, inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, select, text

from palestra.errors import StoreError
from palestra.store.schema import SCHEMA_VERSION, leases, meta, tables, trajectories


def _add_leases(connection: Connection) -> None:
    leases.create(connection, checkfirst=True)


def _add_protections(connection: Connection) -> None:
    names = {column["name"] for column in inspect(connection).get_columns(trajectories.name)}
    if "protections" not in names:
        connection.execute(text("ALTER TABLE trajectories ADD COLUMN protections TEXT"))


MIGRATIONS: dict[int, Callable[[Connection], None]] = {1: tables.create_all, 2: _add_leases, 3: _add_protections}
"""The first makes every table as it is now; those after it find what they would add there already, or add it."""


def schema_version(connection: Connection) -> int:
    """The version that a database says it has; 0 when it is empty. StoreError when it is somebody else's."""
    names = inspect(connection).get_table_names()
    if not names:
        return 0
    found = None
    if meta.name in names:  # a table that other programs have too
        found = connection.execute(select(meta.c.value).where(meta.c.name == "schema_version")).scalar()
    if not str(found).isdecimal():
        raise StoreError(f"holds tables, but not Palestra's (it has {', '.join(sorted(names)[:3])}); name another file")
    return int(str(found))


def migrate(connection: Connection) -> None:
    """Bring the database to SCHEMA_VERSION. StoreError when it comes from a newer Palestra."""
    version = schema_version(connection)
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"has schema version {version}, and this Palestra knows versions up to {SCHEMA_VERSION}; "
            "it was written by a newer one: upgrade Palestra"
        )
    for number in range(version + 1, SCHEMA_VERSION + 1):
        MIGRATIONS[number](connection)
        connection.execute(meta.delete().where(meta.c.name == "schema_version"))
        connection.execute(meta.insert().values(name="schema_version", value=str(number)))
