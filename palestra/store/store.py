"""The store: what trainers, rollouts and readers call."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, delete, func, insert, select, update

from palestra.errors import StoreError, nearest
from palestra.store import check, connect, leases
from palestra.store.leases import IDS_AT_ONCE
from palestra.store.migrations import migrate, schema_version
from palestra.store.query import Answer, ask
from palestra.store.rows import Checkpoint, GroupRows, RunInfo, TrajectoryInfo, from_rows, info_from_row, to_rows
from palestra.store.schema import SCHEMA_VERSION, checkpoints, groups, metrics, nodes, runs, tasks, trajectories
from palestra.store.schema import leases as schema_leases
from palestra.types import Group, Trajectory

STATUSES = ("running", "finished", "interrupted", "failed")
KINDS = ("rollout", "sft", "rl", "eval")
READ_AT_ONCE = 256
"""Groups read in one query."""


class Store:
    """A store, open. Use it as a context manager; a call that returns has its effect on disk.

    Every method raises StoreError, in one sentence, for what it cannot read or write.
    """

    def __init__(self, where: str, engine: Any) -> None:
        self.where, self._engine = where, engine

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        create: bool = False,
        max_mib: int | None = None,
        busy_s: float = connect.BUSY_S,
    ) -> Self:
        """Open the store at a path, or at a SQLAlchemy URL. One from an older Palestra is brought to this schema.

        create   make it where there is none
        max_mib  refuse to grow an SQLite file beyond this; writing then fails as on a full disk
        busy_s   seconds to wait for another writer of an SQLite file
        """
        engine = connect.open_database(where, create=create, max_mib=max_mib, busy_s=busy_s)
        store = cls(connect.shown(where), engine)
        try:
            with store._reading() as connection:
                version = schema_version(connection)
            if not version and not create:
                raise StoreError(
                    f"store {store.where}: is an empty database; name another, or let a rollout make its tables"
                )
            if version != SCHEMA_VERSION:
                with store._writing() as connection:
                    migrate(connection)
        except BaseException:
            engine.dispose()
            raise
        return store

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # Runs

    def begin_run(self, name: str, kind: str, config: Mapping[str, Any], *, parent: str | None = None) -> str:
        """Begin a run and return its id: the name and eight random hexadecimal digits."""
        if kind not in KINDS:
            raise StoreError(f"run {name}: kind {kind!r} is unknown, {nearest(kind, KINDS)}")
        run = f"{name}-{secrets.token_hex(4)}"
        row = {"id": run, "name": name, "kind": kind, "status": "running", "created": time.time()}
        with self._writing() as connection:
            connection.execute(insert(runs).values(**row, parent=parent, config=json.dumps(dict(config), default=str)))
        return run

    def end_run(self, run: str, status: str) -> None:
        """Set the run's status; "running" again when it resumes."""
        if status not in STATUSES:
            raise StoreError(f"run {run}: status {status!r} is unknown, {nearest(status, STATUSES)}")
        with self._writing() as connection:
            if not connection.execute(update(runs).where(runs.c.id == run).values(status=status)).rowcount:
                raise StoreError(f"run {run}: there is no such run")

    def runs(self) -> list[RunInfo]:
        """All runs, oldest first."""
        counted = (
            select(groups.c.run, func.count().label("groups"), func.sum(groups.c.size).label("trajectories"))
            .group_by(groups.c.run)
            .subquery()
        )
        query = select(runs, counted.c.groups, counted.c.trajectories).outerjoin(counted, counted.c.run == runs.c.id)
        with self._reading() as connection:
            return [_run_info(row) for row in connection.execute(query.order_by(runs.c.seq)).mappings()]

    def find_run(self, name_or_id: str) -> RunInfo:
        """The run of that id, or the newest of that name."""
        every = self.runs()
        found = [run for run in every if name_or_id in (run.id, run.name)]
        if not found:
            known = {run.name for run in every}
            raise StoreError(
                f"store {self.where}: no run {name_or_id!r}; {nearest(name_or_id, known) if known else 'it has none'}"
            )
        return found[-1]

    # Groups

    def append(self, run: str, made: Sequence[Group]) -> None:
        """Keep groups: all of them, on disk, when this returns; none when it raises.

        A group that the store already has, equal in all but its seconds, is left as it is; one of the same id but
        with other content is refused.
        """
        if not made:
            return
        fresh: dict[str, GroupRows] = {}
        for group in made:
            rows = to_rows(group)
            _require_equal(group.id, fresh.setdefault(group.id, rows).group["hash"], rows)
        with self._writing() as connection:
            _require_run(connection, run)
            for row in _stored_groups(connection, list(fresh)):
                _require_equal(row.id, row.hash, fresh.pop(row.id))
                if row.run != run:
                    raise StoreError(f"group {row.id}: belongs to run {row.run}, not to {run}; an id is used once")
            _refuse_known_trajectories(connection, fresh.values())
            self._insert(connection, run, list(fresh.values()))

    def _insert(self, connection: Connection, run: str, fresh: list[GroupRows]) -> None:
        if not fresh:
            return
        task_ids = _keep_tasks(connection, [rows.task for rows in fresh])
        seq = connection.execute(select(func.coalesce(func.max(groups.c.seq), 0))).scalar_one()
        group_rows, node_rows, trajectory_rows = [], [], []
        for at, rows in enumerate(fresh, start=seq + 1):
            group_rows.append({**rows.group, "seq": at, "run": run, "task": task_ids[rows.task["hash"]]})
            node_rows += [{**row, "group": at} for row in rows.nodes]
            trajectory_rows += [{**row, "group": at} for row in rows.trajectories]
        connection.execute(insert(groups), group_rows)
        for table, rows_of in ((nodes, node_rows), (trajectories, trajectory_rows)):
            if rows_of:
                connection.execute(insert(table), rows_of)

    def groups(
        self, run: str, *, step: int | None = None, split: str | None = None, trained: bool | None = None
    ) -> Iterator[Group]:
        """The run's groups in the order of arrival; of one step, of one split, spent or not, where asked."""
        query = select(groups.c.seq).where(groups.c.run == run).order_by(groups.c.seq)
        if step is not None:
            query = query.where(groups.c.step == step)
        if split is not None:
            query = query.join(tasks, tasks.c.id == groups.c.task).where(tasks.c.split == split)
        if trained is not None:
            query = query.where(groups.c.trained_step.is_not(None) if trained else groups.c.trained_step.is_(None))
        with self._reading() as connection:
            seqs = list(connection.execute(query).scalars())
        for at in range(0, len(seqs), READ_AT_ONCE):
            yield from self._read(seqs[at : at + READ_AT_ONCE])

    def known_groups(self, ids: Sequence[str]) -> set[str]:
        """Which of the ids are groups of this store."""
        with self._reading() as connection:
            return {row.id for row in _stored_groups(connection, ids)}

    def _read(self, seqs: Sequence[int]) -> list[Group]:
        query = select(groups, tasks.c.body).join(tasks, tasks.c.id == groups.c.task).where(groups.c.seq.in_(seqs))
        with self._reading() as connection:
            heads = connection.execute(query.order_by(groups.c.seq)).mappings().all()
            parts = {
                table: _by_group(connection, table, order, seqs)
                for table, order in ((nodes, nodes.c.node), (trajectories, trajectories.c.position))
            }
        return [self._group(head, *(part.get(head["seq"], []) for part in parts.values())) for head in heads]

    def _group(self, head: Mapping[Any, Any], own: Sequence[Any], made: Sequence[Any]) -> Group:
        try:
            return from_rows(dict(head), head["body"], own, made)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise StoreError(
                f"store {self.where}: group {head['id']} is damaged ({error}); palestra store verify says all that is "
                "wrong, a copy brings it back"
            ) from error

    def trajectories(self, run: str, *, limit: int, offset: int = 0) -> list[TrajectoryInfo]:
        """A page of the run's trajectories in the order of arrival, a line each; their tokens are not read."""
        t, g = trajectories.c, groups.c
        query = (
            select(trajectories, g.step, g.trained_step, tasks.c.env, tasks.c.split, tasks.c.body)
            .join(groups, g.seq == t.group)
            .join(tasks, tasks.c.id == g.task)
            .where(g.run == run)
            .order_by(g.seq, t.position)
        )
        with self._reading() as connection:
            return [info_from_row(row) for row in connection.execute(query.limit(limit).offset(offset)).mappings()]

    def trajectory(self, id: str) -> Trajectory:
        """The trajectory of that id, or the only one whose id begins so."""
        t = trajectories.c
        with self._reading() as connection:
            # A range, not LIKE: it finds the index, and upper and lower case stay apart.
            begins = t.id.between(id, id + "\U0010ffff")
            query = select(t.id, t.group, t.position).where(begins).order_by(t.id).limit(2)
            found = connection.execute(query).all()
        exact = [row for row in found if row.id == id] or found
        if len(exact) != 1:
            what = "more than one trajectory begins" if found else "no trajectory begins"
            raise StoreError(f"store {self.where}: {what} with {id!r}; palestra store ls --run RUN lists them")
        [group] = self._read([exact[0].group])
        made: Trajectory = group.trajectories[exact[0].position]
        return made

    # Leases

    def take(
        self, run: str, consumer: str, *, most: int, lease_s: float, split: str = "train", now: float | None = None
    ) -> list[Group]:
        """Lease the oldest groups of the run that nobody else has and nothing was trained on, ``most`` at most.

        Until ``lease_s`` seconds are over nobody else is given them; after that they are anybody's, so that what a
        consumer held when it was killed is not lost. ``commit_checkpoint(…, consumer=…)`` ends the lease. ``now``: Unix
        seconds, for tests."""
        if most < 1 or not lease_s > 0:
            raise StoreError(f"run {run}: at least 1 group for more than 0 s can be taken, got {most} for {lease_s} s")
        now = time.time() if now is None else now
        with self._writing() as connection:
            _require_run(connection, run)
            seqs = leases.take(connection, run, consumer, split, most, now + lease_s, now)
        return self._read(seqs) if seqs else []

    def renew(self, consumer: str, *, lease_s: float, now: float | None = None) -> int:
        """Let all that the consumer still holds be its own for ``lease_s`` more seconds; how many groups that are."""
        now = time.time() if now is None else now
        own = update(schema_leases).where(schema_leases.c.consumer == consumer).values(until=now + lease_s)
        with self._writing() as connection:
            return int(connection.execute(own).rowcount)

    def release(self, consumer: str) -> int:
        """Give back all that the consumer holds; how many groups that were."""
        with self._writing() as connection:
            own = delete(schema_leases).where(schema_leases.c.consumer == consumer)
            return int(connection.execute(own).rowcount)

    def waiting(self, run: str, *, split: str = "train", now: float | None = None) -> dict[str, int]:
        """Groups of the run that nothing was trained on: "ready" for anybody, and "leased". Producers wait while there
        are more than a consumer can use."""
        with self._reading() as connection:
            return leases.waiting(connection, run, split, time.time() if now is None else now)

    # Checkpoints and metrics

    def commit_checkpoint(
        self,
        run: str,
        step: int,
        path: str,
        sha256: str,
        trained: Sequence[str] = (),
        metrics: Mapping[str, float] | None = None,
        *,
        consumer: str | None = None,
        now: float | None = None,
    ) -> None:
        """Point the run at a checkpoint and mark the groups that it was ``trained`` on, in one transaction.

        Raises StoreError, and changes nothing, where a group is unknown or spent already, is leased to somebody else,
        or, where a ``consumer`` is named, is not leased to it. The marks end the leases.
        """
        with self._writing() as connection:
            _require_run(connection, run)
            leases.require_own(connection, trained, consumer, time.time() if now is None else now)
            row = {"run": run, "step": step, "path": path, "sha256": sha256, "created": time.time()}
            connection.execute(insert(checkpoints).values(**row))
            for id in trained:
                spend = update(groups).where(groups.c.id == id, groups.c.run == run, groups.c.trained_step.is_(None))
                if connection.execute(spend.values(trained_step=step)).rowcount != 1:
                    raise StoreError(
                        f"run {run}: group {id} is unknown, or was trained on before; nothing was committed"
                    )
            connection.execute(delete(schema_leases).where(schema_leases.c.group.in_(_spent(run, step))))
            if metrics:
                _put_metrics(connection, run, step, metrics)

    def checkpoints(self, run: str) -> list[Checkpoint]:
        """The run's checkpoints, oldest first."""
        c = checkpoints.c
        query = select(c.step, c.path, c.sha256, c.created).where(c.run == run).order_by(c.seq)
        with self._reading() as connection:
            return [Checkpoint(*row) for row in connection.execute(query)]

    def last_checkpoint(self, run: str) -> Checkpoint | None:
        found = self.checkpoints(run)
        return found[-1] if found else None

    def add_metrics(self, run: str, step: int, values: Mapping[str, float]) -> None:
        """Keep metrics of a step; a value of the same run, step and name is replaced, as a resumed run repeats steps.

        A value that is not finite is left out: it measures nothing, and a database has no NaN.
        """
        with self._writing() as connection:
            _require_run(connection, run)
            _put_metrics(connection, run, step, values)

    def metrics(self, run: str) -> list[tuple[int, dict[str, float]]]:
        """(step, values) in the order of steps."""
        m = metrics.c
        found: dict[int, dict[str, float]] = {}
        with self._reading() as connection:
            query = select(m.step, m.name, m.value).where(m.run == run).order_by(m.step, m.name)
            for step, name, value in connection.execute(query):
                found.setdefault(step, {})[name] = value
        return list(found.items())

    # The whole

    def counts(self, run: str | None = None) -> dict[str, int]:
        """Runs, groups, trained_groups, trajectories (and by status), turns; tokens as referenced, and as stored."""
        with self._reading() as connection:
            return check.counts(connection, run)

    def verify(self) -> list[str]:
        """What is wrong with the store, in words; empty when all hashes, lengths, links and marks hold."""
        with self._reading() as connection:
            return check.problems(connection)

    def query(self, sql: str, *, limit: int = 1000, timeout_s: float = 30.0) -> Answer:
        """What one SELECT over the tables (``schema.py``) gives, ``limit`` rows at most. It cannot change anything."""
        with connect.explained(self.where):
            return ask(self._engine, sql, limit=limit, timeout_s=timeout_s)

    def compact(self) -> tuple[int, int]:
        """Give back the space that is free in an SQLite file, its write-ahead log included; bytes before and after.

        Needs as much free disk as the file is large, while it works, and no other connection that writes."""
        if self._engine.dialect.name != "sqlite":
            raise StoreError("is no SQLite file; its server compacts it by itself")
        before = connect.size(self._engine)
        with connect.explained(self.where), self._engine.connect() as connection:
            raw = connection.connection  # VACUUM cannot run inside the transaction that SQLAlchemy begins
            raw.execute("VACUUM")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return before, connect.size(self._engine)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with connect.explained(self.where), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        # The option stands on the engine, as a transaction begins before a connection could be told.
        with connect.explained(self.where), self._engine.execution_options(writes=True).begin() as connection:
            connect.take_turn(connection)
            yield connection


def _run_info(row: Mapping[Any, Any]) -> RunInfo:
    return RunInfo(
        **{key: row[key] for key in ("id", "name", "kind", "status", "created", "parent")},
        config=json.loads(row["config"]),
        groups=row["groups"] or 0,
        trajectories=row["trajectories"] or 0,
    )


def _require_run(connection: Connection, run: str) -> None:
    if connection.execute(select(runs.c.seq).where(runs.c.id == run)).first() is None:
        raise StoreError(f"run {run}: there is no such run; begin one first")


def _spent(run: str, step: int) -> Any:
    return select(groups.c.seq).where(groups.c.run == run, groups.c.trained_step == step)


def _require_equal(id: str, hash: str, rows: GroupRows) -> None:
    if rows.group["hash"] != hash:
        raise StoreError(f"group {id}: is there already, with other content; an id is used once")


def _stored_groups(connection: Connection, ids: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    for at in range(0, len(ids), IDS_AT_ONCE):
        query = select(groups.c.id, groups.c.hash, groups.c.run).where(groups.c.id.in_(ids[at : at + IDS_AT_ONCE]))
        found += connection.execute(query).all()
    return found


def _refuse_known_trajectories(connection: Connection, fresh: Iterable[GroupRows]) -> None:
    ids = [row["id"] for rows in fresh for row in rows.trajectories]
    twice = [id for id, times in Counter(ids).items() if times > 1] if len(set(ids)) < len(ids) else []
    for at in range(0, len(ids), IDS_AT_ONCE):
        query = select(trajectories.c.id).where(trajectories.c.id.in_(ids[at : at + IDS_AT_ONCE]))
        twice += connection.execute(query).scalars()
    if twice:
        raise StoreError(f"rollout {twice[0]}: its id is used already; name rollouts after their groups")


def _keep_tasks(connection: Connection, wanted: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The database's ids of tasks by hash; those that it lacks are added."""
    by_hash = {row["hash"]: row for row in wanted}
    known = _task_ids(connection, list(by_hash))
    new = [row for hash, row in by_hash.items() if hash not in known]
    if new:
        connection.execute(insert(tasks), new)
        known |= _task_ids(connection, [row["hash"] for row in new])
    return known


def _task_ids(connection: Connection, hashes: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for at in range(0, len(hashes), IDS_AT_ONCE):
        query = select(tasks.c.hash, tasks.c.id).where(tasks.c.hash.in_(hashes[at : at + IDS_AT_ONCE]))
        found |= {row.hash: row.id for row in connection.execute(query)}
    return found


def _by_group(connection: Connection, table: Any, order: Any, seqs: Sequence[int]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    query = select(table).where(table.c.group.in_(seqs)).order_by(table.c.group, order)
    for row in connection.execute(query).mappings():
        found.setdefault(row["group"], []).append(row)
    return found


def _put_metrics(connection: Connection, run: str, step: int, values: Mapping[str, float]) -> None:
    finite = {name: float(value) for name, value in values.items() if float("-inf") < value < float("inf")}
    m = metrics.c
    connection.execute(metrics.delete().where(m.run == run, m.step == step, m.name.in_(list(values))))
    if finite:
        rows = [{"run": run, "step": step, "name": name, "value": value} for name, value in finite.items()]
        connection.execute(insert(metrics), rows)
