"""Rows that trainers of other libraries read: conversations with a mask per token, and preference pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from palestra.store.rows import message_plain
from palestra.types import Group, Trajectory, Turn


def chat_rows(group: Group) -> Iterator[dict[str, Any]]:
    """One row per path that the model saw: ``messages`` as they were said, and the path's tokens.

    ``is_sampled`` is 1 where the policy chose the token and 0 where it read it; ``logprobs`` and ``versions`` are null
    there. A harness that rewrote its history makes a trajectory several paths, [path, of how many]; a path's tokens
    are exactly those of its last call. Without tokens (text-only, redacted) a row has ``ids`` null."""
    for trajectory in group.trajectories:
        paths = _paths(trajectory.turns) or [()]
        about = {
            "trajectory": trajectory.id,
            "task": group.task.id,
            "reward": trajectory.reward,
            "messages": [message_plain(message) for message in trajectory.transcript],
        }
        for at, turns in enumerate(paths):
            yield {**about, "path": [at, len(paths)], **_tokens(turns)}


def _paths(turns: tuple[Turn, ...]) -> list[tuple[Turn, ...]]:
    """Turns that go on from one another, together."""
    found: list[tuple[Turn, ...]] = [turns[:1]] if turns else []
    for before, turn in pairwise(turns):
        told = before.prompt_ids + before.completion.ids
        if turn.prompt_ids[: len(told)] == told:
            found[-1] += (turn,)
        else:
            found.append((turn,))
    return found


def _tokens(turns: tuple[Turn, ...]) -> dict[str, Any]:
    if not turns:
        return {"ids": None, "is_sampled": None, "logprobs": None, "versions": None}
    ids: list[int] = []
    is_sampled: list[int] = []
    logprobs: list[float | None] = []
    versions: list[int | None] = []
    for turn in turns:
        sampled = turn.completion
        new = turn.prompt_ids[len(ids) :]
        ids += [*new, *sampled.ids]
        is_sampled += [0] * len(new) + [1] * len(sampled.ids)
        logprobs += [*[None] * len(new), *(sampled.logprobs or [None] * len(sampled.ids))]
        versions += [*[None] * len(new), *sampled.versions]
    return {"ids": ids, "is_sampled": is_sampled, "logprobs": logprobs, "versions": versions}


def preference_rows(group: Group) -> Iterator[dict[str, Any]]:
    """At most one pair per group: the best-rewarded rollout against the worst; none where all are worth the same, or
    the two were opened with different words.

    ``prompt``, ``chosen`` and ``rejected`` are lists of messages, as TRL's trainers take them. The ids stand beside
    them where both are a single turn on the same prompt, and are null otherwise."""
    scored = [trajectory for trajectory in group.trajectories if trajectory.reward is not None]
    if not scored:
        return
    best, worst = max(scored, key=_worth), min(scored, key=_worth)
    if _worth(best) == _worth(worst):
        return
    told = _opening(best)
    if worst.transcript[:told] != best.transcript[:told]:
        return
    yield {
        "prompt": [message_plain(message) for message in best.transcript[:told]],
        "chosen": [message_plain(message) for message in best.transcript[told:]],
        "rejected": [message_plain(message) for message in worst.transcript[told:]],
        "chosen_reward": best.reward,
        "rejected_reward": worst.reward,
        "chosen_trajectory": best.id,
        "rejected_trajectory": worst.id,
        "task": group.task.id,
        **_pair_ids(best.turns, worst.turns),
    }


def _opening(trajectory: Trajectory) -> int:
    """How many messages stand before the policy's first."""
    said = (at for at, message in enumerate(trajectory.transcript) if message.role == "assistant")
    return next(said, len(trajectory.transcript))


def _worth(trajectory: Trajectory) -> float:
    return trajectory.reward or 0.0


def _pair_ids(best: tuple[Turn, ...], worst: tuple[Turn, ...]) -> dict[str, Any]:
    if len(best) != 1 or len(worst) != 1 or best[0].prompt_ids != worst[0].prompt_ids:
        return {"prompt_ids": None, "chosen_ids": None, "rejected_ids": None}
    answers = {"chosen_ids": list(best[0].completion.ids), "rejected_ids": list(worst[0].completion.ids)}
    return {"prompt_ids": list(best[0].prompt_ids), **answers}
