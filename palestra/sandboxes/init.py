"""One bubblewrap whose process 1 is a shell that waits for its line: parked, told, waited for, killed whole."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Sequence

from palestra.errors import SandboxError
from palestra.sandboxes import bwrap, pump, rlimits, script, seccomp
from palestra.sandboxes.base import Limits, OnOutput
from palestra.sandboxes.cgroups import Group
from palestra.sandboxes.stores import Child, Exit, Store

_FIRST_EXTRA = 6  # after stdin, stdout, stderr, arguments, status, filter


class Init:
    """Made with ``start``. Descriptors given as ``extra`` are 6, 7 … inside."""

    def __init__(self, child: Child, pipes: pump.Pipes, status: int) -> None:
        self._child, self.pipes, self._status = child, pipes, status
        self._inner: int | None = None
        self.pid = 0
        self.namespace = 0

    @classmethod
    async def start(
        cls, store: Store, view: bwrap.View, *, network: bool = False, deny_ipc: bool = False, extra: Sequence[int] = ()
    ) -> Init:
        """Raises SandboxError where the keeper cannot start bubblewrap; what bubblewrap says comes with ``ready``."""
        arguments = bwrap.arguments(view, network=network)
        pipes, theirs = pump.Pipes.make()
        status, status_in = os.pipe2(os.O_CLOEXEC)
        words, words_in = os.pipe2(os.O_CLOEXEC)
        program = _program_file(deny_ipc)
        try:
            fixed = ["--args", "3", "--json-status-fd", "4", *(["--seccomp", "5"] if program >= 0 else [])]
            argv = [bwrap.find_bwrap(), *fixed, "--", "/bin/sh", "-c", script.INIT]
            spare = program if program >= 0 else words
            child = await store.spawn(argv, (*theirs, words, status_in, spare, *extra))
        except BaseException:
            pipes.close()
            os.close(status)
            os.close(words_in)
            raise
        finally:
            for fd in (*theirs, words, status_in, program):
                if fd >= 0:
                    os.close(fd)
        init = cls(child, pipes, status)
        with os.fdopen(words_in, "wb") as stream, contextlib.suppress(BrokenPipeError):  # then ``ready`` says why
            stream.write(b"\0".join(map(os.fsencode, arguments)) + b"\0")
        return init

    @property
    def exited(self) -> asyncio.Future[Exit]:
        return self._child.exited

    async def ready(self) -> None:
        """Wait until the namespaces exist and hold process 1. Raises SandboxError with bubblewrap's words otherwise."""
        first = b""
        while self._inner is None:
            await pump.readable(self._status)
            piece = os.read(self._status, 4096)
            first += piece
            if not piece:
                await asyncio.shield(self.exited)
                said = os.read(self.pipes.stderr, 4096)
                raise SandboxError(explain(said))
            if b"\n" in first:  # one line, which bubblewrap writes in pieces
                facts = json.loads(first.split(b"\n")[0])
                self.pid, self.namespace = int(facts["child-pid"]), int(facts.get("pid-namespace", 0))
                self._open_inner()

    def _open_inner(self) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has failed since, and the status ends
            self._inner = os.pidfd_open(self.pid)

    def bound(self, limits: Limits, group: Group | None) -> None:
        """Put process 1 under limits, before it has read its line."""
        try:
            if group is not None:
                group.add(self.pid)
            rlimits.apply(self.pid, limits)
        except ProcessLookupError:
            return  # it failed in its set-up: the end of it tells

    async def run(self, data: bytes, limits: Limits, on_output: OnOutput | None) -> pump.Ended:
        """Hand over the line and what follows it; wait for the end of all that it starts."""
        pipes, self.pipes = self.pipes, pump.TAKEN
        return await pump.communicate(
            pipes, self.exited, self.kill, data, keep=limits.output_bytes, wall_s=limits.wall_s, on_output=on_output
        )

    def began(self) -> bool:
        """Whether the command was started at all; asked after the end."""
        return self._status >= 0 and b"exit-code" in os.read(self._status, 4096)

    def kill(self) -> None:
        """Kill process 1, and with it the namespace: its parent hears of it when every process in it is gone."""
        if self._inner is None:
            self._child.kill()
            return
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            signal.pidfd_send_signal(self._inner, signal.SIGKILL)

    async def discard(self) -> None:
        """Kill, wait, and close what is ours. May be called at any time, and again."""
        self.kill()
        if not self.exited.done():
            await asyncio.wait([self.exited])
        self._child.close()
        self.pipes.close()
        self.pipes = pump.TAKEN
        if self._status >= 0:
            os.close(self._status)
            self._status = -1
        if self._inner is not None:
            os.close(self._inner)
            self._inner = None


def explain(said: bytes) -> str:
    """What bubblewrap said, with the command that mends it where we know one."""
    words = said.decode(errors="replace").strip() or "it said nothing"
    mend = ""
    if "namespace" in words.lower() or "uid map" in words or "Operation not permitted" in words:
        mend = "; allow user namespaces: sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1"
    return f"bubblewrap could not make the sandbox: {words}{mend}"


def _program_file(deny_ipc: bool) -> int:
    """The filter on a descriptor of its own (readers share an offset), or −1 on a machine it cannot be written for."""
    if not seccomp.supported():
        return -1
    fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(fd, seccomp.program(deny_ipc=deny_ipc))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
