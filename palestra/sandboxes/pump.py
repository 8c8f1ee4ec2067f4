"""Feeding and reading a child's pipes in the event loop, with a bound on what is kept. No thread and no polling."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from palestra.sandboxes.base import OnOutput, StreamName
from palestra.sandboxes.stores import Exit

CHUNK = 1 << 16
_DISCARD = 1 << 20


def finish(future: asyncio.Future[None]) -> None:
    """Resolve a future that may have been resolved or cancelled before."""
    if not future.done():
        future.set_result(None)


async def readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, finish, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


class Reader:
    """The read end of a pipe: ``keep`` bytes are kept, the rest is moved to /dev/null without being copied."""

    def __init__(self, fd: int, name: StreamName, keep: int, on_output: OnOutput | None = None) -> None:
        self._fd, self._name, self._keep, self._on_output = fd, name, keep, on_output
        self._null = -1
        self._loop = asyncio.get_running_loop()
        self.data = bytearray()
        self.truncated = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._take)

    def _take(self) -> bool:
        """Move one chunk; False when there is none now."""
        try:
            room = self._keep - len(self.data)
            if room <= 0:
                return self._throw_away()
            chunk = os.read(self._fd, min(CHUNK, room))
        except BlockingIOError:
            return False
        self.data += chunk
        if chunk and self._on_output is not None:
            self._on_output(self._name, chunk)
        if not chunk:
            self.stop()
        return bool(chunk)

    def _throw_away(self) -> bool:
        if self._null < 0:
            self._null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        moved = os.splice(self._fd, self._null, _DISCARD)
        self.truncated = self.truncated or moved > 0
        if not moved:
            self.stop()
        return moved > 0

    def drain(self) -> None:
        """Take what is in the pipe now, and stop where its writers have all gone."""
        while not self.ended.done() and self._take():
            continue

    def flush(self) -> tuple[bytes, bool]:
        """What was kept since the last flush, and whether something was thrown away; both start anew."""
        self.drain()
        result = bytes(self.data), self.truncated
        self.data.clear()
        self.truncated = False
        return result

    def hear(self, on_output: OnOutput | None) -> None:
        """Who is called with what is kept from now on."""
        self._on_output = on_output

    def stop(self) -> None:
        if not self.ended.done():
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            if self._null >= 0:
                os.close(self._null)
            self.ended.set_result(None)


class Feeder:
    """The write end of a child's stdin. Data goes as fast as the child reads; EPIPE ends it quietly."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._left = memoryview(b"")
        self._loop = asyncio.get_running_loop()
        self._watched = self._ending = False
        os.set_blocking(fd, False)

    def write(self, data: bytes, *, end: bool) -> None:
        self._left = memoryview(bytes(self._left) + data if self._left else data)
        self._ending = self._ending or end
        self._push()

    def _push(self) -> None:
        try:
            while self._left:
                self._left = self._left[os.write(self._fd, self._left[:_DISCARD]) :]
        except BlockingIOError:
            if not self._watched:
                self._watched = True
                self._loop.add_writer(self._fd, self._push)
            return
        except BrokenPipeError:
            self._left, self._ending = memoryview(b""), True  # the command closed its stdin or ended: its right
        if self._ending:
            self.stop()
        elif self._watched:
            self._watched = False
            self._loop.remove_writer(self._fd)

    def stop(self) -> None:
        if self._fd >= 0:
            if self._watched:
                self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True, slots=True)
class Pipes:
    """Our ends of a child's standard streams."""

    stdin: int
    stdout: int
    stderr: int

    @classmethod
    def make(cls) -> tuple[Pipes, tuple[int, int, int]]:
        """Our ends, and the child's, which are closed once it has been started."""
        child_in, stdin = os.pipe2(os.O_CLOEXEC)
        stdout, child_out = os.pipe2(os.O_CLOEXEC)
        stderr, child_err = os.pipe2(os.O_CLOEXEC)
        return cls(stdin, stdout, stderr), (child_in, child_out, child_err)

    def close(self) -> None:
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd >= 0:
                os.close(fd)


TAKEN = Pipes(-1, -1, -1)
"""What is left where the pipes have gone to somebody else."""


@dataclass(frozen=True, slots=True)
class Ended:
    exit: Exit
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    wall_s: float


async def communicate(
    pipes: Pipes,
    exited: asyncio.Future[Exit],
    kill: Callable[[], None],
    data: bytes,
    *,
    keep: int,
    wall_s: float,
    on_output: OnOutput | None,
) -> Ended:
    """Feed ``data``, read both streams, wait for the end. Takes over ``pipes``.

    ``kill`` is called at the time-out, and when the caller is cancelled: then too the process is waited for."""
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    timed_out = False

    def expire() -> None:
        nonlocal timed_out
        timed_out = not exited.done()
        kill()

    out, err = Reader(pipes.stdout, "stdout", keep, on_output), Reader(pipes.stderr, "stderr", keep, on_output)
    feeder = Feeder(pipes.stdin)
    timer = loop.call_later(wall_s, expire)
    try:
        feeder.write(data, end=True)
        end = await asyncio.shield(exited)
        out.drain()
        err.drain()
    except BaseException:
        kill()
        await asyncio.wait([exited])
        raise
    finally:
        timer.cancel()
        feeder.stop()
        out.stop()
        err.stop()
    wall = time.perf_counter() - started
    return Ended(end, bytes(out.data), bytes(err.data), timed_out, out.truncated or err.truncated, wall)
