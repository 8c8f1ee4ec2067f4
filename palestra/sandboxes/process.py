"""The ``process`` back end: limits WITHOUT isolation. For trusted code only, and named unsafe in each result.

A command sees the whole host as the user that runs it. It is killed with its process group; what leaves the group
(``setsid``) outlives it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from palestra.errors import SandboxError
from palestra.sandboxes import rlimits, script
from palestra.sandboxes.base import ExecResult, Limits, Mount, OnOutput, Usage
from palestra.sandboxes.local import remove_tree
from palestra.sandboxes.running import Running
from palestra.sandboxes.workspace import Workspace

PROTECTIONS = ("unsafe-no-isolation", "rlimits", "clear-environment")


class ProcessSandbox:
    """A folder and plain processes in it. ``mounts`` must name paths as they are on the host: nothing is mounted."""

    def __init__(self, workspace: Path | None, mounts: Sequence[Mount], limits: Limits) -> None:
        for mount in mounts:
            if mount.mask or mount.inside != mount.source:
                raise SandboxError(
                    f"the process back end mounts nothing, so {str(mount.inside)!r} cannot be "
                    f"{'hidden' if mount.mask else 'made'}; ask for the local back end"
                )
        self._own = Path(tempfile.mkdtemp(prefix="palestra-")) if workspace is None else None
        root = workspace or self._own
        if root is None or not root.is_dir():
            raise SandboxError(f"workspace {str(root)!r} must be an existing folder; make it first")
        root = root.resolve()
        self.files = Workspace(root, os.fspath(root))
        self._limits = limits
        self._live: set[Running] = set()
        self._closed = False

    @property
    def workspace(self) -> str:
        """The workspace as its programs see it: its path on the host."""
        return self.files.inside

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
        running = Running(["/bin/sh", "-c", script.INIT], {}, self.workspace, ())
        self._live.add(running)
        try:
            rlimits.apply(running.pid, limits)
            ended = await running.communicate(
                line + stdin,
                keep=limits.output_bytes,
                wall_s=limits.wall_s,
                kill=lambda: _kill_group(running),
                on_output=on_output,
                pipes_end=False,
            )
        finally:
            _kill_group(running)
            running.discard()
            self._live.discard(running)
        return ExecResult(
            exit_code=-9 if ended.timed_out else 128 - ended.code if 128 < ended.code <= 192 else ended.code,
            stdout=ended.stdout,
            stderr=ended.stderr,
            timed_out=ended.timed_out,
            truncated=ended.truncated,
            usage=Usage(ended.wall_s, ended.cpu_s, ended.rss_mib),
            protections=PROTECTIONS,
        )

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
        for running in tuple(self._live):
            _kill_group(running)
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


def _kill_group(running: Running) -> None:
    try:
        os.killpg(running.pid, signal.SIGKILL)  # its own session: the group bears its number
    except ProcessLookupError:
        return  # nothing of the group is left
