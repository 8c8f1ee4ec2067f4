"""The ``container`` back end: a container of Docker or Podman, through the engine's API.

The workspace is a folder of the host, mounted at /workspace; the image is one that the engine has, or a Dockerfile's.
One command runs at a time: when it has ended, everything else in the container is killed, as in every back end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from palestra.errors import SandboxError
from palestra.sandboxes import janitor, script
from palestra.sandboxes.base import ExecResult, Limits, Mount, OnOutput, Protection, Session, Snapshot
from palestra.sandboxes.bwrap import INSIDE
from palestra.sandboxes.engine import Engine, find_socket
from palestra.sandboxes.pump import Ended
from palestra.sandboxes.results import result
from palestra.sandboxes.stores import Exit
from palestra.sandboxes.trees import remove_tree
from palestra.sandboxes.workspace import Workspace

IMAGE = "docker.io/library/debian:stable-slim"
PROTECTIONS = (
    Protection.CONTAINER,
    Protection.MOUNT_NAMESPACE,
    Protection.PID_NAMESPACE,
    Protection.IPC_NAMESPACE,
    Protection.UTS_NAMESPACE,
    Protection.READ_ONLY_ROOT,
    Protection.NO_CAPABILITIES,
    Protection.NO_NEW_PRIVILEGES,
    Protection.SECCOMP,
    Protection.RLIMITS,
    Protection.CGROUP_LIMITS,
    Protection.CLEAR_ENVIRONMENT,
)
_IDLE = "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"  # process 1: reaps whatever is left to it
_WIPE = ["/bin/sh", "-c", "kill -9 -1"]  # all but process 1, which is the engine's, and the killer itself
_INSTEAD = "the container back end has no {}; ask for the local back end"


def find_engine() -> str:
    """Where an engine listens. Raises SandboxError, with the command that starts one, where there is none."""
    return str(find_socket())


class ContainerSandbox:
    """A container that sleeps, and the commands run in it. It is made when it is first needed.

    image   the name of an image that the engine has; or a Path: a folder with a Dockerfile, which is built"""

    def __init__(
        self, workspace: Path | None, mounts: Sequence[Mount], limits: Limits, image: str | Path = IMAGE
    ) -> None:
        self._engine = Engine(find_socket())
        self._own = Path(tempfile.mkdtemp(prefix=janitor.name("process"))) if workspace is None else None
        root = workspace or self._own
        if root is None or not root.is_dir():
            raise SandboxError(f"workspace {str(root)!r} must be an existing folder; make it first")
        self._root = root.resolve()
        self._folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._files = Workspace(self._folder, INSIDE)
        if linked := [mount for mount in mounts if mount.link]:
            raise SandboxError(_INSTEAD.format(f"links, so none at {str(linked[0].inside)!r}"))
        self._mounts, self.limits, self._image = tuple(mounts), limits, image
        self._id: str | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    @property
    def workspace(self) -> str:
        return INSIDE

    async def start(self) -> str:
        """The container's id. Raises SandboxError with the engine's words where it cannot be made."""
        if self._id is None:
            if isinstance(self._image, Path):
                self._image = await self._engine.build(self._image)
            made = await self._engine.ask("POST", "/containers/create", self._description())
            self._id = str(made["Id"])
            await self._engine.ask("POST", f"/containers/{self._id}/start")
        return self._id

    def _description(self) -> dict[str, Any]:
        binds = [f"{self._root}:{INSIDE}:rw", *(f"{m.source}:{m.inside}:ro" for m in self._mounts if not m.mask)]
        tmpfs = {"/tmp": f"size={self.limits.disk_mib}m,mode=1777"} | {
            str(m.inside): "ro" for m in self._mounts if m.mask
        }
        memory = None if self.limits.memory_mib is None else self.limits.memory_mib << 20
        return {
            "Image": self._image,
            "Entrypoint": ["/bin/sh", "-c", _IDLE],
            "Cmd": [],
            "WorkingDir": INSIDE,
            "User": f"{os.getuid()}:{os.getgid()}",
            "Hostname": "sandbox",
            "HostConfig": {
                "Binds": binds,
                "Tmpfs": tmpfs,
                "NetworkMode": "bridge" if self.limits.network else "none",
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "ReadonlyRootfs": True,
                "PidsLimit": self.limits.processes or 0,
                "Memory": memory or 0,
                "MemorySwap": memory or 0,
                "NanoCpus": int((self.limits.cpus or 0) * 1e9),
            },
        }

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
        if limits.network != self.limits.network:
            raise SandboxError(
                "a container's network is fixed when it is opened; open it with the limits of the command"
            )
        self.files().check_folder(cwd)
        line = script.command_line(argv, cwd, {**script.BASE_ENV, **(env or {})}, limits=limits)
        async with self._turn:
            container = await self.start()
            ended = await self._attended(container, line + stdin, limits, on_output)
        kept = () if limits.network else (Protection.NETWORK_NAMESPACE,)
        return result(ended, limits, (*PROTECTIONS, *kept))

    async def _attended(self, container: str, data: bytes, limits: Limits, on_output: OnOutput | None) -> Ended:
        streams = {"stdout": bytearray(), "stderr": bytearray()}
        truncated = timed_out = False
        started = time.perf_counter()

        def hear(name: Literal["stdout", "stderr"], chunk: bytes) -> None:
            nonlocal truncated
            kept = chunk[: limits.output_bytes - len(streams[name])]
            truncated = truncated or len(kept) < len(chunk)
            streams[name] += kept
            if kept and on_output is not None:
                on_output(name, kept)

        made = await self._exec(container, ["/bin/sh", "-c", script.INIT])
        work = self._engine.attach(f"/exec/{made}/start", {"Detach": False, "Tty": False}, data, hear)
        try:
            await asyncio.wait_for(work, limits.wall_s)
        except TimeoutError:
            timed_out = True
        finally:
            wall = time.perf_counter() - started
            await asyncio.shield(self._wipe(container))
        facts = await self._engine.ask("GET", f"/exec/{made}/json")
        code = facts.get("ExitCode")
        end = Exit(137 if code is None else int(code), 0.0, 0.0)
        return Ended(end, bytes(streams["stdout"]), bytes(streams["stderr"]), timed_out, truncated, wall)

    async def _exec(self, container: str, argv: list[str]) -> str:
        attached = {"AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "Tty": False}
        made = await self._engine.ask("POST", f"/containers/{container}/exec", {**attached, "Cmd": argv})
        return str(made["Id"])

    async def _wipe(self, container: str) -> None:
        """Kill what the command left; where the container cannot even do that, it is started afresh."""
        try:
            made = await self._exec(container, _WIPE)
            ask = self._engine.attach(
                f"/exec/{made}/start", {"Detach": False, "Tty": False}, b"", lambda name, data: None
            )
            await asyncio.wait_for(ask, 5)
        except (SandboxError, TimeoutError):
            await self._engine.ask("POST", f"/containers/{container}/restart", t=0)

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
        if self._id is not None:
            with contextlib.suppress(SandboxError):  # the engine is gone, and the container with it or in its care
                await self._engine.ask("DELETE", f"/containers/{self._id}", force="true", v="true")
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
