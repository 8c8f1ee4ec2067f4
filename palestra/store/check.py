"""Counting and checking what a store holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, func, select

from palestra.store.columns import unpack
from palestra.store.rows import add_hashes, digest, group_hash
from palestra.store.schema import groups, nodes, runs, tasks, trajectories
from palestra.store.tree import ROOT


def counts(connection: Connection, run: str | None) -> dict[str, int]:
    g, t, n = groups.c, trajectories.c, nodes.c
    of_run = [g.run == run] if run is not None else []
    in_run = [t.group == g.seq, *of_run]

    def one(query: Any) -> int:
        return int(connection.execute(query).scalar() or 0)

    by_status = connection.execute(select(t.status, func.count()).where(*in_run).group_by(t.status)).all()
    turns = connection.execute(select(t.turns).where(*in_run)).scalars()
    return {
        "runs": one(select(func.count()).select_from(runs)) if run is None else 1,
        "groups": one(select(func.count()).select_from(groups).where(*of_run)),
        "trained_groups": one(select(func.count()).select_from(groups).where(g.trained_step.is_not(None), *of_run)),
        "trajectories": sum(count for _, count in by_status),
        **{f"trajectories_{status}": count for status, count in by_status},
        "turns": sum(len(json.loads(found)) for found in turns),
        "tokens": one(select(func.sum(t.tokens)).where(*in_run)),
        "tokens_stored": one(select(func.sum(n.count)).where(n.group == g.seq, *of_run)),
    }


def problems(connection: Connection) -> list[str]:
    """Everything that does not hold, in words."""
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
    return found + [
        f"token nodes of group number {seq}: belong to no group" for seq in connection.execute(lost).scalars()
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
    known = {row["node"] for row in own}
    parents = {row["node"]: row["parent"] for row in own}
    for row in own:
        if row["parent"] != ROOT and row["parent"] not in known:
            found.append(f"token node {row['node']} hangs on node {row['parent']}, which is missing")
        for column in ("ids", "logprobs", "versions"):
            if row[column] is not None and _length(row[column]) != row["count"]:
                found.append(f"token node {row['node']}: {column} are not {row['count']} values")
    for row in made:
        for prompt, completion, _ in json.loads(row["turns"]):
            if not {prompt, completion} <= known:
                found.append(f"trajectory {row['id']}: a turn ends on a token node that is missing")
    return found or [f"token node {node} is its own ancestor" for node in parents if _is_circular(node, parents)]


def _hash_problems(
    name: str, head: dict[str, Any], own: Sequence[dict[str, Any]], made: Sequence[dict[str, Any]]
) -> list[str]:
    stored = [row["hash"] for row in own]
    add_hashes(own)
    found = [
        f"{name}: token node {row['node']} is not what its hash says"
        for row, was in zip(own, stored, strict=True)
        if row["hash"] != was
    ]
    if not found and group_hash(head["task_hash"], head["step"], made, own) != head["hash"]:
        found.append(f"{name}: its trajectories are not what its hash says")
    return found


def _length(data: bytes) -> int:
    try:
        return len(unpack(data))
    except Exception:  # whatever a damaged column raises, it has no length
        return -1


def _is_circular(node: int, parents: dict[int, int]) -> bool:
    seen = set()
    while node != ROOT and node not in seen:
        seen.add(node)
        node = parents[node]
    return node != ROOT
