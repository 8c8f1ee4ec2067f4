"""The ``local`` back end: bubblewrap, new namespaces, a read-only root, no network, no capabilities.

Every ``exec`` gets fresh namespaces over the same workspace: nothing of an earlier command is left to meet.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from palestra.errors import SandboxError
from palestra.sandboxes import bwrap, rlimits, script
from palestra.sandboxes.base import ExecResult, Limits, Mount, OnOutput, Usage
from palestra.sandboxes.running import Running, finish
from palestra.sandboxes.workspace import Workspace

PROTECTIONS = (
    *(f"{name}-namespace" for name in (*bwrap.NAMESPACES, "mount")),
    "read-only-root",
    "private-tmp",
    "no-capabilities",
    "no-new-privileges",
    "rlimits",
    "clear-environment",
)


class LocalSandbox:
    """One workspace under bubblewrap. ``workspace=None`` makes a private folder and removes it on close."""

    def __init__(self, workspace: Path | None, mounts: Sequence[Mount], limits: Limits) -> None:
        self._program = bwrap.find_bwrap()
        self._own = Path(tempfile.mkdtemp(prefix="palestra-")) if workspace is None else None
        self.files = Workspace(_checked(workspace or self._own), bwrap.INSIDE)
        self._mounts = tuple(mounts)
        self._limits = limits
        self._live: set[Init] = set()
        self._closed = False

    @property
    def workspace(self) -> str:
        """The workspace as programs inside see it."""
        return bwrap.INSIDE

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
        self._check_open()
        limits = limits or self._limits
        self.files.check_folder(cwd)
        line = script.command_line(argv, cwd, {**script.BASE_ENV, **(env or {})})
        init = Init(self._program, bwrap.arguments(self._mounts, self.files.root, network=limits.network, tmp_mib=512))
        self._live.add(init)
        try:
            return await init.run(line + stdin, limits, on_output)
        finally:
            self._live.discard(init)

    async def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        self._check_open()
        return self.files.read(path, max_bytes)

    async def write(self, path: str, data: bytes) -> None:
        self._check_open()
        self.files.write(path, data)

    async def list(self, path: str = ".") -> tuple[str, ...]:
        self._check_open()
        return self.files.names(path)

    async def close(self) -> None:
        self._closed = True
        for init in tuple(self._live):
            init.kill()
        if self._own is not None:
            await asyncio.to_thread(remove_tree, self._own)
            self._own = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("this sandbox is closed; open another with open_sandbox()")


class Init:
    """A bubblewrap whose process 1 is a shell that waits for its one line."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self._status, status_child = os.pipe2(os.O_CLOEXEC)
        feed, args_child = os.pipe2(os.O_CLOEXEC)
        try:
            argv = [
                program,
                "--args",
                str(feed),
                "--json-status-fd",
                str(status_child),
                "--",
                "/bin/sh",
                "-c",
                script.INIT,
            ]
            self._running = Running(argv, {}, "/", (feed, status_child))
        except OSError as error:
            os.close(self._status)
            os.close(args_child)
            raise SandboxError(f"bubblewrap {program!r} cannot be started: {error.strerror}") from error
        finally:
            os.close(status_child)
            os.close(feed)
        with os.fdopen(args_child, "wb") as stream:
            stream.write(b"\0".join(map(os.fsencode, arguments)) + b"\0")
        self._inner: int | None = None

    async def ready(self) -> None:
        """Wait until the namespaces exist and hold process 1."""
        if self._inner is not None:
            return
        first = b""
        while b"\n" not in first:  # one line, which bubblewrap writes in pieces
            await _readable(self._status)
            piece = os.read(self._status, 4096)
            if not piece:
                raise SandboxError(await self._failure())
            first += piece
        pid = json.loads(first.split(b"\n")[0])["child-pid"]
        self._inner = os.pidfd_open(pid)
        self.pid = int(pid)

    async def run(self, data: bytes, limits: Limits, on_output: OnOutput | None) -> ExecResult:
        try:
            await self.ready()
            rlimits.apply(self.pid, limits)
        except BaseException:
            self.discard()
            raise
        try:
            ended = await self._running.communicate(
                data,
                keep=limits.output_bytes,
                wall_s=limits.wall_s,
                kill=self.kill,
                on_output=on_output,
                pipes_end=True,
            )
            began = b"exit-code" in os.read(self._status, 4096)
        finally:
            self._forget()
        if not began and not ended.timed_out:
            raise SandboxError(_explain(ended.stderr))
        return ExecResult(
            exit_code=-9 if ended.timed_out else 128 - ended.code if 128 < ended.code <= 192 else ended.code,
            stdout=ended.stdout,
            stderr=ended.stderr,
            timed_out=ended.timed_out,
            truncated=ended.truncated,
            usage=Usage(ended.wall_s, ended.cpu_s, ended.rss_mib),
            protections=PROTECTIONS if limits.network else (*PROTECTIONS, "network-namespace"),
        )

    def kill(self) -> None:
        """Kill process 1, and with it the namespace: its parent hears of it when every process in it is gone."""
        if self._inner is None:
            self._running.send_signal(signal.SIGKILL)
            return
        try:
            signal.pidfd_send_signal(self._inner, signal.SIGKILL)
        except ProcessLookupError:
            return  # it ended by itself

    def discard(self) -> None:
        self.kill()
        self._running.discard()
        self._forget()

    def _forget(self) -> None:
        for fd in (self._status, self._inner):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._status, self._inner = -1, None

    async def _failure(self) -> str:
        ended = await self._running.communicate(
            b"", keep=4096, wall_s=5, kill=self.kill, on_output=None, pipes_end=False
        )
        return _explain(ended.stderr)


def _explain(stderr: bytes) -> str:
    said = stderr.decode(errors="replace").strip() or "it said nothing"
    mend = ""
    if "uid map" in said or "namespace" in said.lower() or "Operation not permitted" in said:
        mend = (
            "; user namespaces may be forbidden here: "
            "sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000"
        )
    return f"bubblewrap could not make the sandbox: {said}{mend}"


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, finish, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


def _checked(workspace: Path | None) -> Path:
    if workspace is None or not workspace.is_dir():
        raise SandboxError(f"workspace {str(workspace)!r} must be an existing folder; make it first")
    return workspace.resolve()


def remove_tree(root: Path) -> None:
    """Remove a workspace whatever its programs did to its modes."""

    def unlock(function: object, path: str, _: object) -> None:
        parent = os.path.dirname(path)
        os.chmod(parent, 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)

    shutil.rmtree(root, onerror=unlock)
