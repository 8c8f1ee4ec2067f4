"""Progress on stderr: a bar on a terminal, a line for each step elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A function to call with (how many are done, how many there are, what was just done)."""
    if not sys.stderr.isatty():
        yield lambda done, count, told: print(f"{what} {done}/{count} {told}", file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[told]}", markup=False), console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None, told="")
        yield lambda done, count, told: bar.update(task, completed=done, total=count, told=told[:100])
