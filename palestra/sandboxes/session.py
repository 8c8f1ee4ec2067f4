"""A shell that persists between calls, for terminal agents: process 1 of a sandbox, told one command after another.

The end of a command is told on a descriptor of its own with a nonce of the call, so that no output can be taken for it;
by then all that the command wrote in the foreground is in the pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from palestra.errors import SandboxError
from palestra.sandboxes import pump, script, watch
from palestra.sandboxes.base import ExecResult, Limits, OnOutput
from palestra.sandboxes.init import Init
from palestra.sandboxes.results import exit_code, result
from palestra.sandboxes.stores import Exit

if TYPE_CHECKING:
    from palestra.sandboxes.local import LocalSandbox

# bash where there is one, as agents expect; otherwise the system's sh.
SHELL = "for p in /bin/bash /bin/sh; do [ -x $p ] && exec $p -c {loop}; done; exit 125"
LOOP = """__palestra_n='
'
while IFS= read -r __palestra_id && IFS= read -r __palestra_s; do
{ eval "$__palestra_s"; } </dev/null 6>&-
printf '%s %d\\n' "$__palestra_id" "$?" >&6
done"""
_GRACE_S = 1.0  # for the shell to notice that what it waited for was killed


class ShellSession:
    """Made by ``LocalSandbox.session``."""

    def __init__(self, box: LocalSandbox, init: Init, words: int, limits: Limits) -> None:
        self._box, self._init, self._words, self._limits = box, init, words, limits
        self._out = pump.Reader(init.pipes.stdout, "stdout", limits.output_bytes)
        self._err = pump.Reader(init.pipes.stderr, "stderr", limits.output_bytes)
        self._in = pump.Feeder(init.pipes.stdin)
        init.pipes = pump.TAKEN
        self._turn = asyncio.Lock()
        self._heard = b""
        self._closed = False

    @classmethod
    async def start(cls, box: LocalSandbox, env: Mapping[str, str], limits: Limits) -> Self:
        words, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            init = await box.begin(limits, extra=(theirs,))
        except BaseException:
            os.close(words)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(words, False)
        session = cls(box, init, words, limits)
        quoted = shlex.quote(LOOP).replace("\n", "'\"$n\"'")
        opening = f"{script.prelude('.', {**script.BASE_ENV, **env})}; {SHELL.format(loop=quoted)}\n"
        session._in.write(opening.encode(), end=False)
        return session

    @property
    def is_open(self) -> bool:
        return not self._closed and not self._init.exited.done()

    async def run(
        self, command: str, *, timeout_s: float | None = None, on_output: OnOutput | None = None
    ) -> ExecResult:
        if "\0" in command:
            raise SandboxError(f"{command[:80]!r} holds a NUL byte; no command can")
        wall_s = self._limits.wall_s if timeout_s is None else Limits(wall_s=timeout_s).wall_s
        async with self._turn:
            if not self.is_open:
                raise SandboxError("this session has ended; start another with session()")
            self._out.hear(on_output)
            self._err.hear(on_output)
            try:
                return await self._call(command, wall_s)
            finally:
                self._out.hear(None)
                self._err.hear(None)

    async def _call(self, command: str, wall_s: float) -> ExecResult:
        nonce = secrets.token_hex(8)
        quoted = shlex.quote(command).replace("\n", "'\"$__palestra_n\"'")
        before = set(watch.members(self._init.namespace))
        started, cpu_before = time.perf_counter(), self._cpu_s()
        self._in.write(f"{nonce}\neval {quoted}\n".encode("utf-8", "surrogateescape"), end=False)
        guard = self._box.watch(self._init, self._limits, self._init.kill)
        try:
            code = await asyncio.wait_for(self._told(nonce), wall_s)
            timed_out = False
        except TimeoutError:
            code, timed_out = -signal.SIGKILL, True
            await self._kill_foreground(before, nonce)
        except asyncio.CancelledError:
            await self._kill_foreground(before, nonce)
            raise
        finally:
            if guard is not None:
                guard.stop()
        wall = time.perf_counter() - started
        (stdout, cut_out), (stderr, cut_err) = self._out.flush(), self._err.flush()
        end = Exit(code, max(self._cpu_s() - cpu_before, 0.0), 0.0)
        watched = self._box.seen(guard)
        ended = pump.Ended(end, stdout, stderr, timed_out, cut_out or cut_err, wall)
        return result(
            ended, self._limits, self._box.protections(self._limits), account=self._box.account(), watched=watched
        )

    async def _told(self, nonce: str) -> int:
        """The exit code of the call; when the shell has ended, the shell's."""
        mark = f"{nonce} ".encode()
        while True:
            for line in self._heard.split(b"\n")[:-1]:
                code = line[len(mark) :]
                # The call can find this descriptor and write to it: what is no exit code is not the shell's word.
                if line.startswith(mark) and code.isdigit() and int(code) < 256:
                    self._heard = b""
                    return exit_code(int(code))
            await pump.readable(self._words)
            with contextlib.suppress(BlockingIOError):
                piece = os.read(self._words, 4096)
                self._heard = (self._heard + piece)[-4096:]
                if not piece:
                    return exit_code((await asyncio.shield(self._init.exited)).code)

    async def _kill_foreground(self, before: set[int], nonce: str) -> None:
        """Kill what the call started; where the shell itself is what does not end, all of it."""
        for pid in _since(self._init, before):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            await asyncio.wait_for(self._told(nonce), _GRACE_S)
        except TimeoutError:
            self._init.kill()
            await asyncio.wait([self._init.exited])

    def _cpu_s(self) -> float:
        """CPU seconds of the shell and of all that it has waited for."""
        try:
            with open(f"/proc/{self._init.pid}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:  # it has ended
            return 0.0
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._init.kill()
        await self._box.end(self._init)
        self._in.stop()
        self._out.stop()
        self._err.stop()
        os.close(self._words)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _since(init: Init, before: set[int]) -> list[int]:
    """Processes of the session that are neither older than the call nor children of such (process 1 apart)."""
    parents: dict[int, int] = {}
    for pid in watch.members(init.namespace):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", "rb") as stat:
                parents[pid] = int(stat.read().rpartition(b")")[2].split()[1])
    kept = before - {init.pid}

    def is_kept(pid: int) -> bool:
        while pid in parents and pid != init.pid:
            if pid in kept:
                return True
            pid = parents[pid]
        return False

    return [pid for pid in parents if pid != init.pid and not is_kept(pid)]
