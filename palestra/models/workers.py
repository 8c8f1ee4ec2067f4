"""Threads for the work of small models.

A small model's operations are too short to share one between cores: waking a second thread costs what it saves. So
each core takes work of its own (some prompts, some micro-batches) and runs it with one torch thread. Results come back
in the order of the work, so sums, and with them every number, do not depend on who was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

W = TypeVar("W")
R = TypeVar("R")


def spread_over(workers: int, work: Callable[[W], R], items: Sequence[W]) -> Iterator[R]:
    """``work`` of every item on ``workers`` threads, in the order of ``items``.

    No more than ``workers`` results exist at a time that were not taken yet.
    """
    if workers == 1 or len(items) < 2:
        torch.set_num_threads(1)
        yield from map(work, items)
        return
    for at in range(0, len(items), workers):
        yield from _pool(workers).map(work, items[at : at + workers])


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, "palestra", initializer=torch.set_num_threads, initargs=(1,))
