"""The watchdog of a running command, for bounds that no kernel mechanism here enforces.

Where there are no cgroups: memory and processes of a whole process namespace. Where the workspace is a folder of the
host: its size. A timer of the event loop looks; what it finds too large is killed, at most one period late.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from palestra.sandboxes.base import LimitName, Limits
from palestra.sandboxes.trees import size_mib

PERIOD_S = 0.1
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
_SHARE = 50  # at most 1/50 of the time goes into looking


def members(namespace: int) -> Iterator[int]:
    """The processes of a process namespace, by the inode of the namespace."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):  # gone meanwhile, or not ours to see
                if os.stat(f"/proc/{name}/ns/pid").st_ino == namespace:
                    yield int(name)


def usage(namespace: int) -> tuple[int, float]:
    """Threads and resident MiB of a process namespace."""
    threads, resident = 0, 0.0
    for pid in members(namespace):
        with contextlib.suppress(OSError):
            threads += len(os.listdir(f"/proc/{pid}/task"))
            with open(f"/proc/{pid}/statm") as statm:
                resident += int(statm.read().split()[1]) * _PAGE_MIB
    return threads, resident


@dataclass
class Watch:
    """namespace: inode of the process namespace to look after, or None; folder: descriptor of the tree, or None;
    held_mib: what the tree held before, which is not the command's doing.

    hit: the limits for which it was killed; met: those that it was seen at, and held to by the kernel."""

    limits: Limits
    kill: Callable[[], None]
    namespace: int | None
    folder: int | None
    held_mib: float = 0.0
    hit: list[LimitName] = field(default_factory=list)
    met: list[LimitName] = field(default_factory=list)

    def start(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PERIOD_S, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        started = time.perf_counter()
        self.hit += self._excess()
        if self.hit:
            self.kill()
            return
        period = max(PERIOD_S, _SHARE * (time.perf_counter() - started))
        self._timer = asyncio.get_running_loop().call_later(period, self._look)

    def _excess(self) -> Iterator[LimitName]:
        if self.namespace is not None:
            threads, resident = usage(self.namespace)
            if self.limits.processes is not None and threads > self.limits.processes + 1:
                yield "processes"
            elif self.limits.processes is not None and threads > self.limits.processes:
                self.met.append("processes")
            if self.limits.memory_mib is not None and resident > self.limits.memory_mib:
                yield "memory_mib"
        if self.folder is not None and size_mib(self.folder) - self.held_mib > self.limits.disk_mib:
            yield "disk_mib"
