"""The ``local`` back end: bubblewrap, new namespaces, a read-only root, no network, a call filter.

Every ``exec`` gets fresh namespaces over the same workspace and /tmp: no process of an earlier command is left to meet.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from palestra.errors import SandboxError
from palestra.sandboxes import bwrap, cgroups, janitor, script, seccomp
from palestra.sandboxes.base import ExecResult, LimitName, Limits, Mount, OnOutput, Protection, Session, Snapshot
from palestra.sandboxes.init import Init, explain
from palestra.sandboxes.layers import Tree
from palestra.sandboxes.results import result
from palestra.sandboxes.session import ShellSession
from palestra.sandboxes.watch import Watch
from palestra.sandboxes.workspace import Workspace

ALWAYS = (
    Protection.USER_NAMESPACE,
    Protection.MOUNT_NAMESPACE,
    Protection.PID_NAMESPACE,
    Protection.IPC_NAMESPACE,
    Protection.UTS_NAMESPACE,
    Protection.CGROUP_NAMESPACE,
    Protection.READ_ONLY_ROOT,
    Protection.PRIVATE_TMP,
    Protection.NO_CAPABILITIES,
    Protection.NO_NEW_PRIVILEGES,
    Protection.RLIMITS,
    Protection.CLEAR_ENVIRONMENT,
)
_GROUPS: list[cgroups.Groups] = []


def groups() -> cgroups.Groups | None:
    """The control groups of this process, or None where the host lets us have none."""
    if not _GROUPS:
        place = cgroups.hierarchy()
        if place is None:
            return None
        for parent in set(place.parents.values()):
            janitor.sweep_groups(parent)
        _GROUPS.append(cgroups.Groups(place))
        import atexit

        atexit.register(_GROUPS[0].clear)
    return _GROUPS[0]


class LocalSandbox:
    """One workspace under bubblewrap. ``workspace=None`` makes a private, size-limited one that is gone on close."""

    def __init__(self, workspace: Path | None, mounts: Sequence[Mount], limits: Limits) -> None:
        bwrap.find_bwrap()
        if workspace is not None and not workspace.is_dir():
            raise SandboxError(f"workspace {str(workspace)!r} must be an existing folder; make it first")
        self._host = None if workspace is None else workspace.resolve()
        self.mounts = tuple(mounts)
        self.limits = limits
        self._tree: Tree | None = None
        self._opening = asyncio.Lock()
        self._group: cgroups.Group | None = None
        self._parked: Init | None = None
        self._live: set[Init] = set()
        self._sessions: set[ShellSession] = set()
        self._closed = False
        self._left: tuple[str, ...] = ()
        self._place: Path | None = None

    @property
    def workspace(self) -> str:
        """The workspace as programs inside see it."""
        return bwrap.INSIDE

    @property
    def is_busy(self) -> bool:
        return bool(self._live)

    async def tree(self) -> Tree:
        """The files, made when they are first needed."""
        if self._closed:
            raise SandboxError("this sandbox is closed; open another with open_sandbox()")
        async with self._opening:
            if self._tree is None:
                self._tree = await Tree.make(self.limits.disk_mib, self._host)
        return self._tree

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
        files = await self._files()
        if cwd != ".":
            files.check_folder(cwd)
        line = script.command_line(argv, cwd, {**script.BASE_ENV, **(env or {})})
        init = await self.begin(limits)
        try:
            watch = self.watch(init, limits, init.kill)
            try:
                ended = await init.run(line + stdin, limits, on_output)
            finally:
                if watch is not None:
                    watch.stop()
            account = self.account()
            watched = bool(watch and watch.hit)
            if not (init.began() or ended.timed_out or watched or self._closed or (account and account.memory_kills)):
                raise SandboxError(explain(ended.stderr))
            return result(ended, limits, self.protections(limits), account=account, watched=self.seen(watch))
        finally:
            await self.end(init)

    async def begin(
        self,
        limits: Limits,
        *,
        whole: Limits | None = None,
        deny_ipc: bool = False,
        read_only: bool = False,
        extra: Sequence[int] = (),
    ) -> Init:
        """A bounded, waiting process 1; ``end`` it. ``whole`` bounds all together, where that differs."""
        tree = await self.tree()
        plain = not (limits.network or deny_ipc or read_only or extra)
        init, self._parked = (self._parked, None) if plain and self._parked else (None, self._parked)
        if init is None:
            view = tree.view(self.mounts, read_only=read_only)
            init = await Init.start(tree.store, view, network=limits.network, deny_ipc=deny_ipc, extra=extra)
        self._live.add(init)
        try:
            await init.ready()
            init.bound(limits, self._bounded_group(whole or limits))
        except BaseException:
            await self.end(init)
            raise
        return init

    async def end(self, init: Init) -> None:
        try:
            await init.discard()
        finally:
            self._live.discard(init)

    async def prewarm(self) -> None:
        """Start the namespaces of the next ``exec`` now."""
        if self._parked is None:
            tree = await self.tree()
            self._parked = await Init.start(tree.store, tree.view(self.mounts))
            await self._parked.ready()

    def is_healthy(self) -> bool:
        """Whether the next ``exec`` has a living process to go to."""
        return not self._closed and self._parked is not None and not self._parked.exited.done()

    async def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        return (await self._files()).read(path, max_bytes)

    async def write(self, path: str, data: bytes) -> None:
        (await self._files()).write(path, data)

    async def list(self, path: str = ".") -> tuple[str, ...]:
        return (await self._files()).names(path)

    async def snapshot(self) -> Snapshot:
        tree = await self.tree()
        if self._live:
            raise SandboxError(
                "a snapshot needs a sandbox in which nothing runs; wait for its commands, close its sessions"
            )
        if self._parked is not None:
            await self._parked.discard()  # it has the folder that is now frozen as its workspace
            self._parked = None
        return await tree.snapshot()

    async def fork(self, snapshot: Snapshot | None = None) -> Self:
        snapshot = snapshot or await self.snapshot()
        child = type(self)(None, self.mounts, self.limits)
        child._tree = await Tree.of(snapshot, self.limits.disk_mib)
        return child

    async def session(self, *, env: Mapping[str, str] | None = None, limits: Limits | None = None) -> Session:
        limits = limits or self.limits
        session = await ShellSession.start(self, env or {}, limits)
        self._sessions.add(session)
        return session

    def seen(self, watch: Watch | None) -> tuple[LimitName, ...]:
        """The limits that a watchdog, or a look at the file system, shows to be met now."""
        found: tuple[LimitName, ...] = (*watch.hit, *watch.met) if watch else ()
        found = (*found, "disk_mib") if self._tree is not None and self._tree.is_full() else found
        return tuple(dict.fromkeys(found))

    def account(self) -> cgroups.Account | None:
        return self._group.account() if self._group else None

    def protections(self, limits: Limits) -> tuple[Protection, ...]:
        """What stands between a command under ``limits`` and the host."""
        found = [*ALWAYS]
        found += [] if limits.network else [Protection.NETWORK_NAMESPACE]
        found += [Protection.SECCOMP] if seccomp.supported() else []
        found += [Protection.CGROUP_LIMITS] if groups() else [Protection.WATCHDOG]
        found += [Protection.DISK_LIMIT] if self._host is None else [Protection.WATCHDOG]
        return tuple(dict.fromkeys(found))

    async def close(self) -> None:
        self._closed = True
        for session in tuple(self._sessions):
            await session.close()
        for init in tuple(self._live):
            await self.end(init)  # whoever awaits the command gets what it had said
        if self._parked is not None:
            await self._parked.discard()
            self._parked = None
        if self._tree is not None:
            store = self._tree.store
            self._place = None if store.layers else Path(f"/proc/{store.keeper.process.pid}/root{store.path}")
            self._tree.close()
            self._tree = None
        if self._group is not None:
            self._left = () if self._group.is_empty() else ("processes",)
            _GROUPS[0].give(self._group)
            self._group = None

    async def remains(self) -> tuple[str, ...]:
        """What is left after ``close``, by the kernel's word: "processes" (where there are groups to ask), "folder"
        (a workspace that no snapshot needs any more, and with it its mounts). The keeper removes at its own pace, so
        it is given a second."""
        for _ in range(50):
            if self._place is None or not os.path.exists(self._place):
                return self._left
            await asyncio.sleep(0.02)
        return (*self._left, "folder")

    async def __aenter__(self) -> Self:
        await self.tree()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _files(self) -> Workspace:
        tree = await self.tree()
        return Workspace(tree.folder, bwrap.INSIDE)

    def _bounded_group(self, limits: Limits) -> cgroups.Group | None:
        available = groups()
        if available is None:
            return None
        if self._group is None:
            self._group = available.take(limits)
        else:
            self._group.set(limits)
        return self._group

    def watch(self, init: Init, limits: Limits, kill: Callable[[], None]) -> Watch | None:
        """A started watchdog, or None where the kernel looks after it all."""
        folder = None if self._host is None or self._tree is None else self._tree.folder
        if self._group is not None and folder is None:
            return None
        held = 0.0 if self._tree is None else self._tree.held_mib
        watch = Watch(limits, kill, None if self._group else init.namespace, folder, held)
        watch.start()
        return watch
