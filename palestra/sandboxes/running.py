"""One child process: started, fed, read with a bound, timed, killed whole. No thread and no polling.

The end of the process is a readable pidfd; its pipes are read by the event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from palestra.sandboxes.base import OnOutput, StreamName

CHUNK = 1 << 16


def finish(future: asyncio.Future[None]) -> None:
    """Resolve a future that may have been resolved or cancelled before."""
    if not future.done():
        future.set_result(None)


@dataclass
class Reader:
    """The read end of a pipe, drained by the event loop: ``keep`` bytes kept, the rest moved to /dev/null unread."""

    fd: int
    name: StreamName
    keep: int
    on_output: OnOutput | None = None
    data: bytearray = field(default_factory=bytearray)
    truncated: bool = False
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def start(self) -> None:
        os.set_blocking(self.fd, False)
        asyncio.get_running_loop().add_reader(self.fd, self._readable)

    def _readable(self) -> None:
        try:
            chunk = os.read(self.fd, CHUNK)
        except BlockingIOError:
            return
        room = self.keep - len(self.data)
        kept = chunk[:room]
        self.data += kept
        self.truncated = self.truncated or len(chunk) > room
        if kept and self.on_output is not None:
            self.on_output(self.name, kept)
        if not chunk:
            self.stop()

    def drain(self) -> None:
        """Take what is in the pipe now and stop: for a pipe whose writers may outlive the command."""
        while not self.ended.done():
            before = len(self.data), self.truncated
            self._readable()
            if (len(self.data), self.truncated) == before:
                break
        self.stop()

    def stop(self) -> None:
        if not self.ended.done():
            asyncio.get_running_loop().remove_reader(self.fd)
            os.close(self.fd)
            self.ended.set_result(None)


@dataclass
class Feeder:
    """The write end of a child's stdin: ``data`` is written as the child reads; EPIPE ends it quietly."""

    fd: int

    def start(self, data: bytes) -> None:
        os.set_blocking(self.fd, False)
        self._left = memoryview(data)
        self._loop = asyncio.get_running_loop()
        self._watched = False
        self._writable()

    def _writable(self) -> None:
        try:
            while self._left:
                self._left = self._left[os.write(self.fd, self._left[: 1 << 20]) :]
        except BlockingIOError:
            if not self._watched:
                self._watched = True
                self._loop.add_writer(self.fd, self._writable)
            return
        except BrokenPipeError:
            self._left = self._left[:0]  # the command closed its stdin or ended: its right
        self.stop()

    def stop(self) -> None:
        if self.fd >= 0:
            if getattr(self, "_watched", False):
                self._loop.remove_writer(self.fd)
            os.close(self.fd)
            self.fd = -1


class Running:
    """A started child. ``wait`` may be awaited once; ``kill`` may be called at any time."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, pass_fds: Sequence[int]) -> None:
        child_in, self._stdin = os.pipe2(os.O_CLOEXEC)
        self._stdout, child_out = os.pipe2(os.O_CLOEXEC)
        self._stderr, child_err = os.pipe2(os.O_CLOEXEC)
        try:
            self.process = subprocess.Popen(
                list(argv),
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                env=dict(env),
                cwd=cwd,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
        except BaseException:
            for fd in (self._stdin, self._stdout, self._stderr):
                os.close(fd)
            raise
        finally:
            for fd in (child_in, child_out, child_err):
                os.close(fd)
        self.pid = self.process.pid
        self._pidfd = os.pidfd_open(self.pid)
        self._reaped: tuple[int, float, float] | None = None

    def send_signal(self, number: int) -> None:
        if self._reaped is None:
            signal.pidfd_send_signal(self._pidfd, number)

    async def communicate(
        self,
        data: bytes,
        *,
        keep: int,
        wall_s: float,
        kill: Callable[[], None],
        on_output: OnOutput | None,
        pipes_end: bool,
    ) -> Ended:
        """Feed ``data``, read both streams, wait. ``kill`` is called at the time-out and when cancelled.

        pipes_end  the pipes end with the process (nothing can outlive it); otherwise they are drained and left."""
        loop = asyncio.get_running_loop()
        started = time.perf_counter()
        exited: asyncio.Future[None] = loop.create_future()
        timed_out = False

        def expire() -> None:
            nonlocal timed_out
            timed_out = True
            kill()

        out, err = Reader(self._stdout, "stdout", keep, on_output), Reader(self._stderr, "stderr", keep, on_output)
        feeder = Feeder(self._stdin)
        self._stdin = self._stdout = self._stderr = -1  # theirs now
        loop.add_reader(self._pidfd, finish, exited)
        timer = loop.call_later(wall_s, expire)
        out.start()
        err.start()
        feeder.start(data)
        try:
            await exited
            if pipes_end:
                await out.ended
                await err.ended
            else:
                out.drain()
                err.drain()
        finally:
            timer.cancel()
            loop.remove_reader(self._pidfd)
            if not exited.done():
                kill()
            feeder.stop()
            out.stop()
            err.stop()
            code, cpu_s, rss_mib = self.reap()
        wall = time.perf_counter() - started
        return Ended(
            code, bytes(out.data), bytes(err.data), timed_out, out.truncated or err.truncated, wall, cpu_s, rss_mib
        )

    def reap(self) -> tuple[int, float, float]:
        """(exit code, CPU seconds, peak resident MiB) of the child and all it waited for; waits if it has not ended."""
        if self._reaped is None:
            _, status, used = os.wait4(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            self.process.returncode = code  # so that Popen does not wait for it again
            os.close(self._pidfd)
            self._reaped = code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        return self._reaped

    def discard(self) -> None:
        """Kill a child that was never talked to, and forget it; one that has ended is left as it is."""
        self.send_signal(signal.SIGKILL)
        for fd in (self._stdin, self._stdout, self._stderr):
            if fd >= 0:
                os.close(fd)
        self._stdin = self._stdout = self._stderr = -1
        self.reap()


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    wall_s: float
    cpu_s: float
    rss_mib: float
