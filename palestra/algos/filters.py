"""Filters: which groups carry a signal. What is dropped is counted under a named reason, never silently."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from palestra.algos.credit import checked, is_flat

ALL_RIGHT, ALL_WRONG, ALL_EQUAL, ALONE = "all_right", "all_wrong", "all_equal", "alone"


def flat_reason(rewards_G: Tensor) -> str | None:
    """Why a group has no comparison to learn from, or None where it has one.

    "alone": one rollout; "all_right", "all_wrong": every reward is 1, or 0; "all_equal": any other shared value.
    """
    rewards_G = checked(rewards_G)
    if len(rewards_G) == 1:
        return ALONE
    if not is_flat(rewards_G):
        return None
    return {1.0: ALL_RIGHT, 0.0: ALL_WRONG}.get(float(rewards_G[0]), ALL_EQUAL)


def drop_flat(groups: Sequence[Tensor]) -> tuple[list[int], dict[str, int]]:
    """Positions of the groups (each rewards_G) that carry a signal, and how many were dropped for which reason."""
    kept, dropped = [], dict.fromkeys((ALL_RIGHT, ALL_WRONG, ALL_EQUAL, ALONE), 0)
    for at, rewards_G in enumerate(groups):
        reason = flat_reason(rewards_G)
        if reason is None:
            kept.append(at)
        else:
            dropped[reason] += 1
    return kept, dropped
