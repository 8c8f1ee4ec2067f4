"""Counting and checking what a store holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from palestra.store.columns import expand, unpack
from palestra.store.rows import ARRAYS, digest, group_hash, node_hashes, packed_row
from palestra.store.schema import checkpoints, groups, leases, nodes, runs, tasks, trajectories
from palestra.store.tree import ROOT


def counts(connection: Connection, run: str | None) -> dict[str, int]:
    g, t, n = groups.c, trajectories.c, nodes.c
    of_run = [g.run == run] if run is not None else []
    in_run = [t.group == g.seq, *of_run]

    def one(query: Any) -> int:
        return int(connection.execute(query).scalar() or 0)

    by_status = connection.execute(select(t.status, func.count()).where(*in_run).group_by(t.status)).all()
    return {
        "runs": one(select(func.count()).select_from(runs).where(*([runs.c.id == run] if run is not None else []))),
        "groups": one(select(func.count()).select_from(groups).where(*of_run)),
        "trained_groups": one(select(func.count()).select_from(groups).where(g.trained_step.is_not(None), *of_run)),
        "trajectories": sum(count for _, count in by_status),
        **{f"trajectories_{status}": count for status, count in by_status},
        "turns": one(select(func.sum(t.turn_count)).where(*in_run)),
        "tokens": one(select(func.sum(t.tokens)).where(*in_run)),
        "tokens_stored": one(select(func.sum(n.count)).where(n.group == g.seq, *of_run)),
    }


def problems(connection: Connection) -> list[str]:
    """Everything that does not hold, in words."""
    if broken := _file_problems(connection):
        return broken  # a file whose pages are wrong makes every other finding doubtful
    found = [f"task {row.id}: its content is not what its hash says" for row in _changed_tasks(connection)]
    heads = select(groups, tasks.c.hash.label("task_hash")).outerjoin(tasks, tasks.c.id == groups.c.task)
    for head in connection.execute(heads.order_by(groups.c.seq)).mappings().all():
        found += _group_problems(connection, dict(head))
    orphans = (
        select(trajectories.c.id).outerjoin(groups, groups.c.seq == trajectories.c.group).where(groups.c.seq.is_(None))
    )
    found += [f"trajectory {id}: belongs to no group" for id in connection.execute(orphans).scalars()]
    lost = (
        select(nodes.c.group).outerjoin(groups, groups.c.seq == nodes.c.group).where(groups.c.seq.is_(None)).distinct()
    )
    found += [f"token nodes of group number {seq}: belong to no group" for seq in connection.execute(lost).scalars()]
    return found + _mark_problems(connection)


def _file_problems(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    told = connection.exec_driver_sql("PRAGMA quick_check(5)").scalars().all()
    return [] if list(told) == ["ok"] else [f"file: {line}" for line in told]


def _mark_problems(connection: Connection) -> list[str]:
    """A mark is written with the checkpoint that contains the group: one without the other was not written by us."""
    g, c = groups.c, checkpoints.c
    pointer = select(c.seq).where(c.run == g.run, c.step == g.trained_step).exists()
    unbacked = select(g.id, g.trained_step).where(g.trained_step.is_not(None), ~pointer).order_by(g.seq)
    held = select(groups.c.id).join(leases, leases.c.group == g.seq).where(g.trained_step.is_not(None)).order_by(g.seq)
    return [
        *(f"group {id}: is leased, and was trained on already" for id in connection.execute(held).scalars()),
        *(
            f"group {row.id}: is marked as trained on at step {row.trained_step}, and its run has no such checkpoint"
            for row in connection.execute(unbacked)
        ),
    ]


def _changed_tasks(connection: Connection) -> Iterator[Any]:
    for row in connection.execute(select(tasks.c.id, tasks.c.hash, tasks.c.body)):
        if digest(row.body).hex() != row.hash:
            yield row


def _group_problems(connection: Connection, head: dict[str, Any]) -> list[str]:
    name = f"group {head['id']}"
    of_nodes = select(nodes).where(nodes.c.group == head["seq"]).order_by(nodes.c.node)
    own = [dict(row) for row in connection.execute(of_nodes).mappings()]
    of_rows = select(trajectories).where(trajectories.c.group == head["seq"]).order_by(trajectories.c.position)
    made = [dict(row) for row in connection.execute(of_rows).mappings()]
    if head["task_hash"] is None:
        return [f"{name}: its task is missing"]
    if len(made) != head["size"]:
        return [f"{name}: has {len(made)} trajectories, and was written with {head['size']}"]
    broken = _tree_problems(own, made)
    if broken:
        return [f"{name}: {problem}" for problem in broken]
    return _hash_problems(name, head, own, made)


def _tree_problems(own: Sequence[dict[str, Any]], made: Sequence[dict[str, Any]]) -> list[str]:
    found = []
    known = {row["node"] for row in own} | {ROOT}
    parents = {row["node"]: row["parent"] for row in own}
    for row in own:
        if row["parent"] not in known:
            found.append(f"token node {row['node']} hangs on node {row['parent']}, which is missing")
        found += [f"token node {row['node']}: {column} {wrong}" for column, wrong in _damage(row)]
    for row in made:
        refs = _refs(row["turns"])
        if refs is None or len(refs) != row["turn_count"]:
            found.append(f"trajectory {row['id']}: its turns cannot be read")
        elif not {node for prompt, completion, _ in refs for node in (prompt, completion)} <= known:
            found.append(f"trajectory {row['id']}: a turn ends on a token node that is missing")
    return found or [f"token node {node} is its own ancestor" for node in parents if _is_circular(node, parents)]


def _hash_problems(
    name: str, head: dict[str, Any], own: Sequence[dict[str, Any]], made: Sequence[dict[str, Any]]
) -> list[str]:
    found = [
        f"{name}: token node {row['node']} is not what its hash says"
        for row, hash in zip(own, node_hashes([packed_row(row) for row in own]), strict=True)
        if row["hash"] != hash
    ]
    if not found and group_hash(head["task_hash"], head["step"], made, own) != head["hash"]:
        found.append(f"{name}: its trajectories are not what its hash says")
    return found


def _damage(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for column in ARRAYS:
        if row[column] is not None:
            try:
                unpack(expand(row[column]), row["count"])
            except ValueError as error:
                yield column, str(error)


def _refs(text: str) -> list[list[Any]] | None:
    try:
        refs = json.loads(text)
    except ValueError:
        return None
    is_whole = isinstance(refs, list) and all(isinstance(ref, list) and len(ref) == 3 for ref in refs)
    return refs if is_whole else None


def _is_circular(node: int, parents: dict[int, int]) -> bool:
    seen = set()
    while node != ROOT and node not in seen:
        seen.add(node)
        node = parents[node]
    return node != ROOT
