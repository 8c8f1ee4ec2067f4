"""Whole groups as plain rows, and back: what JSON Lines and Parquet hold.

A row is a trajectory with all that is known of its group and its run, so that a table of rows can be filtered and
joined; the rows of a group stand together, in order. A log-probability that is no finite number is null nowhere: it is
the text "nan", "inf" or "-inf" in JSON, and itself in Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from palestra.errors import StoreError
from palestra.store.rows import RunInfo, message_of, message_plain, score_of, score_plain, task_of, task_plain
from palestra.types import Completion, Group, Status, Trajectory, Turn

SCHEMA = "palestra.rollout/1"


def rows_of(group: Group, run: RunInfo) -> list[dict[str, Any]]:
    """One row per trajectory."""
    task = task_plain(group.task)
    return [
        {
            "schema": SCHEMA,
            "run": run.id,
            "group": group.id,
            "step": group.step,
            "env": group.task.env,
            "split": group.task.split,
            "task": task,
            "trajectory": trajectory.id,
            "index": trajectory.index,
            "status": trajectory.status.value,
            "reward": trajectory.reward,
            "score": score_plain(trajectory.score),
            "error": trajectory.error,
            "seconds": trajectory.seconds,
            "protections": list(trajectory.protections),
            "transcript": [message_plain(message) for message in trajectory.transcript],
            "turns": [_turn_plain(turn) for turn in trajectory.turns],
        }
        for trajectory in group.trajectories
    ]


def groups_of(rows: Iterable[dict[str, Any]]) -> Iterator[Group]:
    """The inverse. Raises StoreError, naming the row, for one that is none."""
    for _, own in groupby(enumerate(rows, start=1), key=lambda row: row[1].get("group") if _is_row(row[1]) else None):
        yield _group(list(own))


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and row.get("schema") == SCHEMA


def _group(numbered: list[tuple[int, dict[str, Any]]]) -> Group:
    made = []
    task = None
    for number, row in numbered:
        try:
            if not _is_row(row):
                raise ValueError(f"has no schema {SCHEMA!r}")
            task = task or task_of(row["task"])
            made.append(_trajectory(row, task))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"row {number}: is no rollout of Palestra's: {type(error).__name__}: {error}") from None
    assert task is not None
    return Group(numbered[0][1]["group"], task, numbered[0][1]["step"], tuple(made))


def _trajectory(row: dict[str, Any], task: Any) -> Trajectory:
    return Trajectory(
        id=row["trajectory"],
        task=task,
        index=row["index"],
        turns=tuple(map(_turn, row["turns"])),
        transcript=tuple(map(message_of, row["transcript"])),
        score=score_of(row["score"]),
        status=Status(row["status"]),
        error=row["error"],
        seconds=row["seconds"],
        protections=tuple(row.get("protections") or ()),
    )


def _turn_plain(turn: Turn) -> dict[str, Any]:
    sampled = turn.completion
    return {
        "prompt_ids": list(turn.prompt_ids),
        "ids": list(sampled.ids),
        "logprobs": None if sampled.logprobs is None else list(sampled.logprobs),
        "versions": list(sampled.versions),
        "finish_reason": sampled.finish_reason,
    }


def _turn(plain: dict[str, Any]) -> Turn:
    logprobs = None if plain["logprobs"] is None else tuple(map(float, plain["logprobs"]))
    ids, versions = tuple(plain["ids"]), tuple(plain["versions"])
    return Turn(tuple(plain["prompt_ids"]), Completion(ids, logprobs, versions, plain["finish_reason"]))


def to_line(row: dict[str, Any]) -> bytes:
    """A row as a line of strict JSON, in ASCII: a policy may have written half a surrogate pair."""
    turns = [
        {**turn, "logprobs": turn["logprobs"] and [v if math.isfinite(v) else str(v) for v in turn["logprobs"]]}
        for turn in row["turns"]
    ]
    return json.dumps({**row, "turns": turns}, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def from_lines(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Raises StoreError, naming the line, for one that is no JSON."""
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"row {number}: is no JSON: {error}") from None
