"""Leases: which consumer is at work on which group, and until when. Functions inside the store's transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, exists, func, insert, select

from palestra.errors import StoreError
from palestra.store.schema import groups, leases, tasks

IDS_AT_ONCE = 500
"""Ids asked for in one query; databases bound the number of its parameters."""


def is_leased(now: float) -> ColumnElement[bool]:
    """Whether a group has a lease that has not run out."""
    return exists().where(leases.c.group == groups.c.seq, leases.c.until > now)


def take(connection: Connection, run: str, consumer: str, split: str, most: int, until: float, now: float) -> list[int]:
    """Lease the oldest groups of the run that nobody has and nothing was trained on, up to ``most``; their ``seq``."""
    query = (
        select(groups.c.seq)
        .join(tasks, tasks.c.id == groups.c.task)
        .where(groups.c.run == run, groups.c.trained_step.is_(None), tasks.c.split == split, ~is_leased(now))
        .order_by(groups.c.seq)
        .limit(most)
    )
    seqs = list(connection.execute(query).scalars())
    if seqs:
        connection.execute(delete(leases).where(leases.c.group.in_(seqs)))
        connection.execute(insert(leases), [{"group": seq, "consumer": consumer, "until": until} for seq in seqs])
    return seqs


def require_own(connection: Connection, ids: Sequence[str], consumer: str | None, now: float) -> None:
    """Raises StoreError where a group is leased to somebody else, or, for a named consumer, is not leased to it.

    A lease of one's own that ran out is as good as any, as long as nobody else took the group."""
    query = select(groups.c.id, leases.c.consumer, leases.c.until).join(leases, leases.c.group == groups.c.seq)
    held: dict[str, Any] = {}
    for at in range(0, len(ids), IDS_AT_ONCE):
        asked = query.where(groups.c.id.in_(ids[at : at + IDS_AT_ONCE]))
        held |= {row.id: row for row in connection.execute(asked)}
    for id in ids:
        row = held.get(id)
        if row is not None and row.consumer != consumer and (row.until > now or consumer is not None):
            raise StoreError(f"group {id}: is leased to {row.consumer}; nothing was committed")
        if row is None and consumer is not None:
            raise StoreError(f"group {id}: is not leased to {consumer}, take it first; nothing was committed")


def waiting(connection: Connection, run: str, split: str, now: float) -> dict[str, int]:
    """Of the run's groups that nothing was trained on: how many are "ready" for anybody, and how many "leased"."""
    fresh = (
        select(func.count())
        .select_from(groups)
        .join(tasks, tasks.c.id == groups.c.task)
        .where(groups.c.run == run, groups.c.trained_step.is_(None), tasks.c.split == split)
    )
    leased = int(connection.execute(fresh.where(is_leased(now))).scalar_one())
    return {"ready": int(connection.execute(fresh).scalar_one()) - leased, "leased": leased}
