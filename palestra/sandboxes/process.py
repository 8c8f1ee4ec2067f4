"""The ``process`` back end: limits WITHOUT isolation. For trusted code only, and named unsafe in each result.

A command sees the whole host as the user that runs it. It is killed with its process group; what leaves the group
(``setsid``) outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from palestra.errors import SandboxError
from palestra.sandboxes import janitor, pump, rlimits, script
from palestra.sandboxes.base import ExecResult, Limits, Mount, OnOutput, Protection, Session, Snapshot
from palestra.sandboxes.results import result
from palestra.sandboxes.stores import Exit
from palestra.sandboxes.trees import remove_tree
from palestra.sandboxes.workspace import Workspace

PROTECTIONS = (Protection.NO_ISOLATION, Protection.RLIMITS, Protection.CLEAR_ENVIRONMENT)
_INSTEAD = "the process back end has no {}: it isolates nothing; ask for the local back end"


class ProcessSandbox:
    """A folder and plain processes in it. ``mounts`` must name paths as they are on the host: nothing is mounted."""

    def __init__(self, workspace: Path | None, mounts: Sequence[Mount], limits: Limits) -> None:
        for mount in mounts:
            if mount.mask or mount.inside != mount.source:
                raise SandboxError(_INSTEAD.format(f"mounts, so none at {str(mount.inside)!r}"))
        self._own = Path(tempfile.mkdtemp(prefix=janitor.name("process"))) if workspace is None else None
        root = workspace or self._own
        if root is None or not root.is_dir():
            raise SandboxError(f"workspace {str(root)!r} must be an existing folder; make it first")
        self.workspace = os.fspath(root.resolve())
        self._folder = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._files = Workspace(self._folder, self.workspace)
        self.limits = limits
        self._live: set[PlainChild] = set()
        self._closed = False

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        limits = limits or self.limits
        self.files().check_folder(cwd)
        line = script.command_line(argv, cwd, {**script.BASE_ENV, **(env or {})})
        child = PlainChild(self.workspace)
        self._live.add(child)
        try:
            rlimits.apply(child.pid, limits)
            ended = await pump.communicate(
                child.pipes,
                child.exited,
                child.kill,
                line + stdin,
                keep=limits.output_bytes,
                wall_s=limits.wall_s,
                on_output=on_output,
            )
        finally:
            child.kill()
            self._live.discard(child)
        return result(ended, limits, PROTECTIONS)

    def files(self) -> Workspace:
        if self._closed:
            raise SandboxError("this sandbox is closed; open another with open_sandbox()")
        return self._files

    async def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        return self.files().read(path, max_bytes)

    async def write(self, path: str, data: bytes) -> None:
        self.files().write(path, data)

    async def list(self, path: str = ".") -> tuple[str, ...]:
        return self.files().names(path)

    async def snapshot(self) -> Snapshot:
        raise SandboxError(_INSTEAD.format("snapshots"))

    async def fork(self, snapshot: Snapshot | None = None) -> Self:
        raise SandboxError(_INSTEAD.format("forks"))

    async def session(self, *, env: Mapping[str, str] | None = None, limits: Limits | None = None) -> Session:
        raise SandboxError(_INSTEAD.format("sessions"))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for child in tuple(self._live):
            child.kill()
        if self._live:
            await asyncio.wait([child.exited for child in self._live])
        os.close(self._folder)
        if self._own is not None:
            above = os.open(self._own.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                remove_tree(above, self._own.name)
            finally:
                os.close(above)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class PlainChild:
    """A waiting shell of ours, in a session and process group of its own; its end is a readable pidfd."""

    def __init__(self, cwd: str) -> None:
        self.pipes, theirs = pump.Pipes.make()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", script.INIT],
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2],
                env={},
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:
            self.pipes.close()
            raise SandboxError(f"/bin/sh cannot be started: {error.strerror}") from error
        finally:
            for fd in theirs:
                os.close(fd)
        self.pid = self._process.pid
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[Exit] = self._loop.create_future()
        self._pidfd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._pidfd, self._reap)

    def _reap(self) -> None:
        self.kill()  # the rest of the group, while its number is still ours
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _, status, used = os.wait4(self.pid, 0)
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self.exited.set_result(Exit(code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))

    def kill(self) -> None:
        if not self.exited.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
