"""Our side of the keeper: size-limited file systems that hold workspaces, and processes started among them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palestra.errors import SandboxError
from palestra.sandboxes import janitor
from palestra.sandboxes import keeper as keeper_program

INODES_PER_MIB = 64
_LOCK = threading.Lock()
_KEEPER: list[Keeper] = []


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: exit code (negative for a signal), CPU seconds, peak resident MiB; children included."""

    code: int
    cpu_s: float
    rss_mib: float


class Keeper:
    """The one keeper of this process. Started when the first sandbox needs it; ends with us, however we end."""

    def __init__(self) -> None:
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper_program.__file__, str(theirs.fileno()), janitor.name("keeper")],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": tempfile.gettempdir()},
                start_new_session=True,
            )
        self._door.settimeout(30)
        said = self._door.recv(4096)  # blocks for the 20 ms of an interpreter's start, once per process
        facts = json.loads(said) if said else {"error": "it ended at once"}
        if "error" in facts:
            self._door.close()
            self.process.wait()
            raise SandboxError(
                f"user and mount namespaces cannot be made here: {facts['error']}; allow them with "
                "sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1"
            )
        self.base = Path(facts["base"])

    def connect(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                socket.send_fds(self._door, [b"+"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def close(self) -> None:
        self._door.close()
        self.process.wait()

    def forget(self) -> None:
        """In a forked child: the keeper is the parent's; our copy of the socket must not keep it alive."""
        self._door.close()
        self.process.returncode = 0


def connect() -> tuple[Keeper, socket.socket]:
    """A connection to the keeper, which is started, or started again where it was killed."""
    with _LOCK:
        if _KEEPER:
            try:
                return _KEEPER[0], _KEEPER[0].connect()
            except OSError:  # it was killed; its namespaces and all in them are gone
                _KEEPER.pop().close()
        else:
            janitor.sweep_folders()
            os.register_at_fork(after_in_child=_forget)
            import atexit

            atexit.register(shut_down)
        _KEEPER.append(Keeper())
        return _KEEPER[0], _KEEPER[0].connect()


def shut_down() -> None:
    """End the keeper and all that it holds; the next sandbox starts another."""
    with _LOCK:
        while _KEEPER:
            _KEEPER.pop().close()


def _forget() -> None:
    for keeper in _KEEPER:
        keeper.forget()
    _KEEPER.clear()


class Child:
    """A process that the keeper started for us."""

    def __init__(self, pid: int, exited: asyncio.Future[Exit]) -> None:
        self.pid = pid
        self.exited = exited
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:  # it has ended already, and the word of it is on its way
            self._pidfd = -1

    def kill(self) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
        self._pidfd = -1


class Store:
    """A size-limited file system in the keeper's namespace, and the connection that keeps it alive.

    folder   descriptor of it, for reading and writing from outside
    path     where the keeper's processes find it
    name     its name under the keeper's base, for overlays
    """

    def __init__(self, mib: int) -> None:
        self.mib = mib
        self.keeper, self._link = connect()
        self._link.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._link.fileno(), self._readable)
        self._answers: deque[asyncio.Future[tuple[dict[str, Any], list[int]]]] = deque()
        self._exits: dict[int, asyncio.Future[Exit]] = {}
        self.folder = -1
        self.path = ""
        self.layers = 0

    @classmethod
    async def make(cls, mib: int) -> Store:
        store = cls(mib)
        try:
            answer, fds = await store._ask({"op": "store", "mib": mib, "inodes": mib * INODES_PER_MIB + 1024})
        except BaseException:
            store.close()
            raise
        store.folder, store.path = fds[0], answer["path"]
        return store

    @property
    def name(self) -> str:
        return os.path.basename(self.path)

    async def overlay(self, lowers: Sequence[str]) -> tuple[str, str, int]:
        """A fresh layer over ``lowers`` (topmost first): its name, the path of the merged view and a descriptor of it.

        Raises OSError where the kernel has no overlay for us."""
        self.layers += 1
        upper = f"{self.name}/u{self.layers}"
        answer, fds = await self._ask({"op": "overlay", "upper": upper, "lowers": list(lowers)}, raw=True)
        return upper, answer["path"], fds[0]

    async def spawn(self, argv: Sequence[str], fds: Sequence[int]) -> Child:
        """Start a process whose descriptors 0, 1, 2, 3 … are ``fds``."""
        answer, _ = await self._ask({"op": "spawn", "argv": list(argv)}, fds)
        pid = int(answer["pid"])
        return Child(pid, self._exits[pid])

    def close(self) -> None:
        """Let go: the keeper kills what runs here and removes the file system."""
        if self._link.fileno() < 0:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(self._link.fileno())
        self._link.close()
        if self.folder >= 0:
            os.close(self.folder)
        self._lost("the sandbox was closed")

    async def _ask(
        self, request: dict[str, Any], fds: Sequence[int] = (), *, raw: bool = False
    ) -> tuple[dict[str, Any], list[int]]:
        future: asyncio.Future[tuple[dict[str, Any], list[int]]] = self._loop.create_future()
        self._answers.append(future)
        try:
            socket.send_fds(self._link, [json.dumps(request).encode()], fds)
        except OSError as error:
            self._answers.remove(future)
            raise SandboxError(
                f"the sandbox keeper is gone ({error.strerror or error}); open the sandbox again"
            ) from error
        answer, received = await asyncio.shield(future)
        if "error" in answer:
            if raw:
                raise OSError(answer["errno"], answer["error"])
            raise SandboxError(f"the sandbox keeper could not {request['op']}: {answer['error']}")
        return answer, received

    def _readable(self) -> None:
        try:
            data, fds = keeper_program.receive(self._link, 1 << 16, 4)
        except BlockingIOError:
            return
        except ConnectionError:
            data, fds = b"", []
        if not data:
            self._loop.remove_reader(self._link.fileno())
            self._lost("the sandbox keeper was killed, and its sandboxes with it; open the sandbox again")
            return
        message = json.loads(data)
        if "exit" in message:
            exited = self._exits.pop(message["exit"])
            code = os.waitstatus_to_exitcode(message["status"])
            if not exited.done():
                exited.set_result(Exit(code, message["cpu_s"], message["rss_kib"] / 1024))
            return
        if "pid" in message:
            self._exits[message["pid"]] = self._loop.create_future()
        future = self._answers.popleft()
        if not future.done():
            future.set_result((message, fds))

    def _lost(self, why: str) -> None:
        waiting: list[asyncio.Future[Any]] = [*self._answers, *self._exits.values()]
        self._answers.clear()
        self._exits.clear()
        for future in waiting:
            if not future.done() and not self._loop.is_closed():
                future.set_exception(SandboxError(why))
                future.exception()  # whoever waits sees it; where nobody waits, it is no news
