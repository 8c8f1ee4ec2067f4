"""Progress on stderr: a bar on a terminal; elsewhere a line now and then, the last one always."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINE_EVERY_S = 5.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A function to call with (how many are done, how many there are, what was just done)."""
    if not sys.stderr.isatty():
        yield _lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<11}"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[told]}", markup=False), console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None, told="")
        yield lambda done, count, told: bar.update(task, completed=done, total=count, told=told[:100])


def _lines(what: str) -> Callable[[int, int, str], None]:
    start = last = time.monotonic()

    def tell(done: int, count: int, told: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done == count or now - last >= LINE_EVERY_S:
            last = now
            print(f"{what} {done}/{count} {now - start:.0f} s {told}", file=sys.stderr, flush=True)

    return tell
