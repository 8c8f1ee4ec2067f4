"""Do one thing to many, a few at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[int, int, str], None]
"""Called with (how many are done, how many there are, what was just done)."""


async def each(
    items: Sequence[T],
    work: Callable[[T], Awaitable[R]],
    *,
    at_once: int | None = None,
    progress: Progress | None = None,
    told: Callable[[R], str] = str,
) -> list[R]:
    """``work`` of every item, in the order of ``items``, ``at_once`` (default: the CPUs) at a time.

    The first exception cancels the rest and is raised as it is, not in a group."""
    slots = asyncio.Semaphore(at_once or os.cpu_count() or 1)
    finished = 0

    async def one(item: T) -> R:
        nonlocal finished
        async with slots:
            result = await work(item)
        finished += 1
        if progress:
            progress(finished, len(items), told(result))
        return result

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
