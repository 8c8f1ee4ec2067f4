"""Trajectories in ATIF, the interchange format of Harbor, with token ids and log-probabilities of every call."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import palestra
from palestra.store.rows import RunInfo
from palestra.types import Group, Message, ToolCall, Trajectory, Turn

VERSION = "ATIF-v1.8"


def atif_rows(group: Group, run: RunInfo) -> Iterator[dict[str, Any]]:
    """One document per trajectory that said anything: ``session_id`` is the group's, what ATIF has no word for stands
    under ``extra``."""
    for trajectory in group.trajectories:
        if trajectory.transcript:
            yield _document(trajectory, group, run)


def _document(trajectory: Trajectory, group: Group, run: RunInfo) -> dict[str, Any]:
    return {
        "schema_version": VERSION,
        "session_id": group.id,
        "trajectory_id": trajectory.id,
        "agent": {"name": "palestra", "version": palestra.__version__, "extra": {"run": run.id}},
        "steps": _steps(trajectory),
        "final_metrics": {
            "total_prompt_tokens": sum(len(turn.prompt_ids) for turn in trajectory.turns),
            "total_completion_tokens": sum(len(turn.completion.ids) for turn in trajectory.turns),
        },
        "extra": {
            "env": group.task.env,
            "task": group.task.id,
            "split": group.task.split,
            "status": trajectory.status.value,
            "reward": trajectory.reward,
        },
    }


def _steps(trajectory: Trajectory) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    calls = iter(trajectory.turns)
    for message in trajectory.transcript:
        if message.role == "tool" and steps and steps[-1]["source"] == "agent":
            _observe(steps[-1], message)
        elif message.role == "assistant":
            steps.append(_agent_step(message, next(calls, None)))
        else:
            source = "system" if message.role == "system" else "user"
            steps.append({"source": source, "message": message.content})
    return [{"step_id": number, **step} for number, step in enumerate(steps, start=1)]


def _agent_step(message: Message, turn: Turn | None) -> dict[str, Any]:
    step: dict[str, Any] = {"source": "agent", "message": message.content}
    if message.tool_calls:
        step["tool_calls"] = [_call(call) for call in message.tool_calls]
    if turn is not None:
        step["metrics"] = _metrics(turn)
        step["llm_call_count"] = 1
    return step


def _call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):  # ATIF wants an object; a policy may have written anything
        arguments = {"text": call.arguments}
    return {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}


def _observe(step: dict[str, Any], message: Message) -> None:
    known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
    result: dict[str, Any] = {"content": message.content}
    if message.tool_call_id in known:
        result["source_call_id"] = message.tool_call_id
    step.setdefault("observation", {"results": []})["results"].append(result)


def _metrics(turn: Turn) -> dict[str, Any]:
    sampled = turn.completion
    found: dict[str, Any] = {
        "prompt_tokens": len(turn.prompt_ids),
        "completion_tokens": len(sampled.ids),
        "prompt_token_ids": list(turn.prompt_ids),
        "completion_token_ids": list(sampled.ids),
        "extra": {"versions": list(sampled.versions), "finish_reason": sampled.finish_reason},
    }
    if sampled.logprobs is not None and all(map(math.isfinite, sampled.logprobs)):
        found["logprobs"] = list(sampled.logprobs)
    return found
