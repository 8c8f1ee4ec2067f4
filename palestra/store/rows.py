"""Groups to rows and back. Pure: no database here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from palestra.errors import StoreError
from palestra.store.columns import expand, pack_floats, pack_ints, squeeze, unpack
from palestra.store.tree import ROOT, Node, TokenTree, TurnRef
from palestra.types import Group, Message, Score, Status, Task, ToolCall, Trajectory, Unscored

Row = Mapping[str, Any]
ARRAYS = ("ids", "logprobs", "versions")


@dataclass(frozen=True)
class RunInfo:
    """A run: ``status`` is running, finished, interrupted or failed; ``created`` is in Unix seconds."""

    id: str
    name: str
    kind: str
    status: str
    created: float
    parent: str | None
    config: Mapping[str, Any]
    groups: int
    trajectories: int


@dataclass(frozen=True)
class Checkpoint:
    step: int
    path: str
    sha256: str
    created: float


@dataclass(frozen=True)
class TrajectoryInfo:
    """A line about a trajectory: ``trained_step`` is of the checkpoint that contains it, ``said`` its last message."""

    id: str
    step: int
    env: str
    task: str
    split: str
    status: str
    reward: float | None
    turns: int
    tokens: int
    trained_step: int | None
    said: str


@dataclass(frozen=True)
class GroupRows:
    """What one group becomes. Keys that the database gives (group, task) are still missing in them."""

    task: Row
    group: dict[str, Any]
    nodes: list[dict[str, Any]]
    trajectories: list[dict[str, Any]]


def to_rows(group: Group) -> GroupRows:
    """Raises StoreError for a group that contradicts itself."""
    tree = TokenTree()
    try:
        rows = [_trajectory_row(at, trajectory, tree, group) for at, trajectory in enumerate(group.trajectories)]
        nodes = node_rows(tree)
        body = _task_body(group.task)
    except (TypeError, ValueError) as error:
        raise StoreError(f"group {group.id}: cannot be stored as it is: {error}") from None
    task = {"hash": digest(body).hex(), "env": group.task.env, "split": group.task.split, "body": body}
    row = {
        "id": group.id,
        "step": group.step,
        "size": len(rows),
        "hash": group_hash(task["hash"], group.step, rows, nodes),
    }
    return GroupRows(task, row, nodes, rows)


def from_rows(group: Row, task_body: str, nodes: Sequence[Row], trajectories: Sequence[Row]) -> Group:
    """The inverse of ``to_rows``."""
    task = task_of(json.loads(task_body))
    tree = tree_of(nodes)
    made = tuple(
        Trajectory(
            id=row["id"],
            task=task,
            index=row["index"],
            turns=tree.turns([TurnRef(*ref) for ref in json.loads(row["turns"])]),
            transcript=tuple(message_of(plain) for plain in json.loads(row["transcript"])),
            score=score_of(json.loads(row["score"])),
            status=Status(row["status"]),
            error=None if row["error"] is None else json.loads(row["error"]),
            seconds=row["seconds"],
            protections=tuple(json.loads(row["protections"] or "[]")),
        )
        for row in trajectories
    )
    return Group(group["id"], task, group["step"], made)


def info_from_row(row: Mapping[Any, Any]) -> TrajectoryInfo:
    last = json.loads(row["transcript"])[-1:]
    said = last[0]["content"] if last and last[0]["role"] == "assistant" else ""
    plain = {key: row[key] for key in ("id", "step", "env", "split", "status", "reward", "tokens", "trained_step")}
    return TrajectoryInfo(**plain, task=json.loads(row["body"])["id"], turns=row["turn_count"], said=said)


def node_rows(tree: TokenTree) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "node": at,
            "parent": node.parent,
            "is_sampled": int(node.is_sampled),
            "count": len(node.ids),
            "ids": pack_ints(node.ids),
            "logprobs": None if node.logprobs is None else pack_floats(node.logprobs),
            "versions": None if node.versions is None else pack_ints(node.versions),
        }
        for at, node in enumerate(tree.nodes)
    ]
    for row, hash in zip(rows, node_hashes(rows), strict=True):
        row["hash"] = hash
        for column in ARRAYS:
            row[column] = None if row[column] is None else squeeze(row[column])
    return rows


def packed_row(row: Row) -> dict[str, Any]:
    """A stored node row with its arrays packed again. Raises ValueError where one is damaged."""
    return {**row, **{column: None if row[column] is None else expand(row[column]) for column in ARRAYS}}


def node_hashes(rows: Sequence[Row]) -> list[bytes]:
    """Of each packed node row: over its own columns and its parent's hash, so it names the whole path."""
    done: dict[int, bytes] = {ROOT: b""}
    by_node = {row["node"]: row for row in rows}
    for row in rows:
        chain = [row]
        while chain[-1]["parent"] not in done:  # a split puts a parent after its child
            chain.append(by_node[chain[-1]["parent"]])
        for link in reversed(chain):
            kinds = bytes([link["is_sampled"], link["logprobs"] is not None, link["versions"] is not None])
            parts = (kinds, link["ids"], link["logprobs"] or b"", link["versions"] or b"")
            done[link["node"]] = digest(done[link["parent"]], *parts)
    return [done[row["node"]] for row in rows]


def tree_of(nodes: Sequence[Row]) -> TokenTree:
    """The tree of stored node rows, which must be in the order of ``node``. Raises ValueError for damaged ones."""
    tree = TokenTree()
    for row in map(packed_row, nodes):
        ids, logprobs, versions = (
            None if row[column] is None else unpack(row[column], row["count"]) for column in ARRAYS
        )
        tree.nodes.append(Node(row["parent"], ids, bool(row["is_sampled"]), logprobs, versions))  # type: ignore[arg-type]
    return tree


def group_hash(task_hash: str, step: int, trajectories: Sequence[Row], nodes: Sequence[Row]) -> str:
    """Over everything that reading the group gives back, the seconds left out."""
    kept = ("id", "position", "index", "status", "score", "error", "transcript", "turns", "tokens", "turn_count")
    # Where nothing ran there is nothing to say of it: so a group from before this column keeps its hash.
    ran = [[row["protections"]] if row["protections"] else [] for row in trajectories]
    listed = [[row[key] for key in kept] + more for row, more in zip(trajectories, ran, strict=True)]
    told = dump([task_hash, step, listed])
    return digest(told, *(row["hash"] for row in nodes)).hex()


def _trajectory_row(position: int, trajectory: Trajectory, tree: TokenTree, group: Group) -> dict[str, Any]:
    if trajectory.task != group.task:
        raise StoreError(f"rollout {trajectory.id}: belongs to task {trajectory.task.id}, its group to {group.task.id}")
    try:
        refs = tree.add(trajectory.turns)
    except ValueError as error:
        raise ValueError(f"rollout {trajectory.id}: {error}") from None
    return {
        "id": trajectory.id,
        "position": position,
        "index": trajectory.index,
        "status": trajectory.status.value,
        "reward": trajectory.reward,
        "score": dump(score_plain(trajectory.score)),
        "error": None if trajectory.error is None else dump(trajectory.error),  # may quote any text, as a transcript
        "seconds": trajectory.seconds,
        "protections": dump(list(trajectory.protections)) if trajectory.protections else None,
        "transcript": dump([message_plain(message) for message in trajectory.transcript]),
        "turns": dump([[ref.prompt, ref.completion, ref.finish_reason] for ref in refs]),
        "turn_count": len(refs),
        "tokens": sum(len(turn.prompt_ids) + len(turn.completion.ids) for turn in trajectory.turns),
    }


def _task_body(task: Task) -> str:
    """Raises ValueError for facts that JSON would change: what is read must equal what was appended."""
    plain = task_plain(task)
    body = dump(plain)
    back = json.loads(body)
    if back != plain:
        changed = sorted(key for key, value in plain["facts"].items() if back["facts"].get(key) != value)
        raise ValueError(
            f"the facts of task {task.id} are no plain JSON data (see {', '.join(map(repr, changed)) or 'its keys'}); "
            "use lists for tuples and strings for keys"
        )
    return body


def task_plain(task: Task) -> dict[str, Any]:
    # By hand: pydantic's way costs ten times as much, in the middle of the training loop.
    return {
        "id": task.id,
        "env": task.env,
        "split": task.split,
        "seed": task.seed,
        "messages": [message_plain(message) for message in task.messages],
        "facts": dict(task.facts),
        "difficulty": task.difficulty,
    }


def task_of(plain: dict[str, Any]) -> Task:
    return Task(**{**plain, "messages": tuple(message_of(message) for message in plain["messages"])})


def message_plain(message: Message) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [asdict(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    return plain


def message_of(plain: dict[str, Any]) -> Message:
    calls = tuple(ToolCall(**call) for call in plain.get("tool_calls", ()))
    return Message(plain["role"], plain["content"], calls, plain.get("tool_call_id"))


def score_plain(score: Score | Unscored) -> dict[str, Any]:
    if isinstance(score, Unscored):
        return {"reason": score.reason}
    return {"value": score.value, "components": dict(score.components), "evidence": score.evidence}


def score_of(plain: dict[str, Any]) -> Score | Unscored:
    return Unscored(plain["reason"]) if "reason" in plain else Score(**plain)


def dump(plain: Any) -> str:
    # ASCII: a lone surrogate is a legal str but no legal UTF-8, and a database takes UTF-8 only.
    return json.dumps(plain, separators=(",", ":"))


def digest(*parts: str | bytes) -> bytes:
    """16 bytes of BLAKE2b over the parts, each with its length before it."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.digest()
