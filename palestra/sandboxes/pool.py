"""A pool of sandboxes that are ready: namespaces made, process 1 waiting, so that a lease costs no start.

A sandbox is leased once. What comes back is closed, whatever state it is in, and another is made in its place from
nothing: a fresh file system and fresh namespaces are the one proof of cleanness that needs no list of what to look for.
The pool checks that the old one is gone (no process in its control group, no folder and so no mount) and counts what
is not as a leak.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Self

from palestra.errors import SandboxError
from palestra.sandboxes.base import Limits, Mount
from palestra.sandboxes.local import LocalSandbox

_STARTS_KEPT = 1024


@dataclass(frozen=True, slots=True)
class PoolMetrics:
    """in_use, ready, waiting: now. started, leased, expired, unhealthy: so far. leaks: sandboxes that left something
    behind when they were closed; anything but 0 is a fault. start_s, wait_s: median seconds of a start, of a lease."""

    in_use: int
    ready: int
    waiting: int
    started: int
    leased: int
    expired: int
    unhealthy: int
    leaks: int
    start_s: float
    wait_s: float


class Lease:
    """A sandbox for a time. ``async with pool.lease() as box`` is the usual way to have one."""

    def __init__(self, box: LocalSandbox) -> None:
        self.box = box
        self.expired = False
        self.timer: asyncio.TimerHandle | None = None


class SandboxPool:
    """``size`` sandboxes at most at once, leased and ready ones together; up to ``ready`` of them are kept waiting.
    They are made anew when half of those are used up, so that a burst of leases does not wait for others being made.

    lease_s   a lease that lasts longer is ended: its commands are killed and its sandbox is closed under it"""

    def __init__(
        self,
        size: int,
        *,
        ready: int | None = None,
        mounts: Sequence[Mount] = (),
        limits: Limits | None = None,
        lease_s: float = 3600.0,
    ) -> None:
        if size < 1:
            raise SandboxError(f"a pool holds at least 1 sandbox, got size {size}")
        self._size, self._target = size, min(size, ready if ready is not None else size)
        self._mounts, self._limits, self._lease_s = tuple(mounts), limits or Limits(), lease_s
        self._free: deque[LocalSandbox] = deque()
        self._slots = asyncio.Semaphore(size)
        self._leases: set[Lease] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._making = self._waiting = self._started = self._leased = 0
        self._expired = self._unhealthy = self._leaks = 0
        self._starts: deque[float] = deque(maxlen=_STARTS_KEPT)
        self._waits: deque[float] = deque(maxlen=_STARTS_KEPT)
        self._closed = False

    async def __aenter__(self) -> Self:
        await self.fill()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def fill(self) -> None:
        """Have ``ready`` sandboxes waiting, as far as the size lets it. Raises SandboxError where none starts."""
        while not self._closed and self._missing() > 0:
            self._making += 1
            try:
                box = await self._make()
            finally:
                self._making -= 1
            self._free.append(box)

    def _missing(self) -> int:
        held = len(self._free) + self._making
        return min(self._target - held, self._size - held - len(self._leases))

    @contextlib.asynccontextmanager
    async def lease(self, *, timeout_s: float = 60.0) -> AsyncIterator[LocalSandbox]:
        """A sandbox, ready at once where one waits.

        Raises SandboxError: none came free within ``timeout_s``, or the pool is closed."""
        lease = await self._take(timeout_s)
        try:
            yield lease.box
        finally:
            await self._give(lease)

    async def _take(self, timeout_s: float) -> Lease:
        started = time.perf_counter()
        self._waiting += 1
        try:
            if self._slots.locked():
                await asyncio.wait_for(self._slots.acquire(), timeout_s)
            else:
                await self._slots.acquire()
        except TimeoutError:
            raise SandboxError(
                f"no sandbox came free in {timeout_s} s: all {self._size} are leased; enlarge it"
            ) from None
        finally:
            self._waiting -= 1
        try:
            lease = Lease(await self._ready_box())
        except BaseException:
            self._slots.release()
            raise
        lease.timer = asyncio.get_running_loop().call_later(self._lease_s, self._expire, lease)
        self._leases.add(lease)
        self._leased += 1
        self._waits.append(time.perf_counter() - started)
        return lease

    async def _ready_box(self) -> LocalSandbox:
        while not self._closed:
            if not self._free:
                return await self._make()
            box = self._free.popleft()
            if box.is_healthy():
                return box
            self._unhealthy += 1
            await box.close()
        raise SandboxError("this pool is closed; make another")

    async def _make(self) -> LocalSandbox:
        started = time.perf_counter()
        box = LocalSandbox(None, self._mounts, self._limits)
        try:
            await box.prewarm()
        except BaseException:
            await box.close()
            raise
        self._started += 1
        self._starts.append(time.perf_counter() - started)
        return box

    def _expire(self, lease: Lease) -> None:
        lease.expired = True
        self._expired += 1
        self._later(lease.box.close())

    async def _give(self, lease: Lease) -> None:
        if lease.timer is not None:
            lease.timer.cancel()
        self._leases.discard(lease)
        self._slots.release()
        self._later(self._retire(lease.box))

    async def _retire(self, box: LocalSandbox) -> None:
        await box.close()
        self._later(self._check(box))
        if 2 * len(self._free) <= self._target:
            await self.fill()

    async def _check(self, box: LocalSandbox) -> None:
        if await box.remains():
            self._leaks += 1

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait until what was returned is closed and the pool is full again. Raises what a start raised."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        await self.fill()

    def metrics(self) -> PoolMetrics:
        return PoolMetrics(
            in_use=len(self._leases),
            ready=len(self._free),
            waiting=self._waiting,
            started=self._started,
            leased=self._leased,
            expired=self._expired,
            unhealthy=self._unhealthy,
            leaks=self._leaks,
            start_s=statistics.median(self._starts) if self._starts else 0.0,
            wait_s=statistics.median(self._waits) if self._waits else 0.0,
        )

    async def close(self) -> None:
        """End all leases and close all that waits."""
        self._closed = True
        for lease in tuple(self._leases):
            await lease.box.close()
        with contextlib.suppress(SandboxError):  # a start that failed now is no news: nobody needs it
            await self.settle()
        while self._free:
            await self._free.popleft().close()
