"""The zygote: a preloaded interpreter inside a sandbox that forks per call.

For graders and forges that run many small pieces of Python: a call costs a fork, not the start of an interpreter. The
interpreter is process 1 of its namespaces (nothing inside can kill or stop it), cannot be traced or read by its
children, and sees a file system that nobody can write to unless ``writable`` is asked for. One call runs at a time;
when it has ended, all that it started is killed before its result is given. What a call says comes on a descriptor of
its own, framed by nonce and length; whatever else arrives there marks the call as tampered with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import secrets
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Literal, Self

from palestra.errors import SandboxError
from palestra.sandboxes import pump, rlimits, script
from palestra.sandboxes.base import LimitName, Limits, Mount, StreamName, Usage
from palestra.sandboxes.cgroups import Account
from palestra.sandboxes.init import Init
from palestra.sandboxes.interpreters import probe, python_mounts
from palestra.sandboxes.local import LocalSandbox
from palestra.sandboxes.results import exit_code
from palestra.sandboxes.trees import remove_tree, reopened

FRAME = "!QI"
_HEADER = struct.calcsize(FRAME)
Outcome = Literal["returned", "failed", "killed", "timed_out", "tampered"]
_KINDS = {getattr(resource, name): name for name in dir(resource) if name.startswith("RLIMIT_")}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call came to.

    outcome     "returned": the code ran to its end, or exited with 0; "failed": it raised, exited otherwise, or said
                more than its limit; "killed": a signal or a limit ended it; "timed_out": we did; "tampered": the result
                descriptor carried something that is no frame of this call
    frames      what it replied, in order, up to the first byte that was no frame
    survivors   processes that it left behind and that were killed
    """

    outcome: Outcome
    frames: tuple[bytes, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    survivors: int
    usage: Usage
    limits_hit: tuple[LimitName, ...] = field(default=())


class Zygote:
    """``async with Zygote(preload=("json",)) as zygote: reply = await zygote.call("reply(CALL)", b"x")``"""

    def __init__(
        self,
        executable: str = sys.executable,
        *,
        preload: Sequence[str] = (),
        mounts: Sequence[Mount] = (),
        paths: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        writable: bool = False,
    ) -> None:
        """preload: modules imported before the first fork; they must be trusted. paths: entries put before
        ``sys.path``. limits: of a call that names none; of memory and processes also the most that a call may name.
        writable: give each call an empty /tmp and workspace."""
        probe(executable)
        self._executable, self._preload, self._paths = executable, tuple(preload), tuple(paths)
        self._env = dict(env or {})
        self._limits = limits or Limits()
        self._writable = writable
        self._box = LocalSandbox(None, (*python_mounts(executable), *mounts), self._limits)
        self._turn = asyncio.Lock()
        self._link: socket.socket | None = None
        self.version: tuple[int, ...] = ()
        self.calls = 0
        self._account: Account | None = None
        self._out: pump.Reader | None = None
        self._err: pump.Reader | None = None

    async def start(self) -> Self:
        """Raises SandboxError, with what the interpreter said, where it does not come up."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            with theirs:
                # Its own limits are wide: a child's can only be narrower.
                own = replace(self._limits, memory_mib=None, cpu_s=None, file_mib=None, open_files=None)
                extra = (theirs.fileno(),)
                self._init = await self._box.begin(
                    own, whole=self._limits, deny_ipc=True, read_only=not self._writable, extra=extra
                )
            self._out, self._err = self._readers(self._init)
            feeder = pump.Feeder(self._init.pipes.stdin)
            self._init.pipes = pump.TAKEN
            feeder.write(self._line(), end=True)
            said = await self._hear(ours)
            if not said:
                await asyncio.shield(self._init.exited)
                words = self._err.flush()[0].decode(errors="replace").strip()
                raise SandboxError(f"the interpreter {self._executable!r} did not start in the sandbox: {words[-800:]}")
        except BaseException:
            ours.close()
            await self._box.close()
            for reader in (self._out, self._err):
                if reader is not None:
                    reader.stop()
            raise
        self._link, self.version = ours, tuple(said["ready"])
        return self

    def _readers(self, init: Init) -> tuple[pump.Reader, pump.Reader]:
        """The interpreter's own words: drained, so that it never blocks, and kept for when it fails."""
        out, err = init.pipes.stdout, init.pipes.stderr
        return pump.Reader(out, "stdout", 1 << 16), pump.Reader(err, "stderr", 1 << 16)

    def _line(self) -> bytes:
        program = (files("palestra.sandboxes") / "zygote_program.py").read_text()
        wanted = json.dumps({"paths": self._paths, "preload": self._preload})
        env = {**script.BASE_ENV, "PYTHONDONTWRITEBYTECODE": "1", **self._env}
        flags = ["-s", "-E"] if tuple(probe(self._executable)["version"]) < (3, 11) else ["-s", "-P"]
        return script.replacement([self._executable, *flags, "-c", program, wanted], env)

    async def call(self, source: str, payload: bytes = b"", *, limits: Limits | None = None) -> Reply:
        """Run ``source`` in a fresh fork, with ``CALL`` = payload and ``reply(bytes)`` at hand.

        Raises SandboxError: the zygote is not running."""
        async with self._turn:
            if self._link is None or self._init.exited.done():
                raise SandboxError("this zygote is not running; start it, or open another")
            self.calls += 1
            try:
                return await self._call(source.encode("utf-8", "surrogateescape"), payload, limits or self._limits)
            except BaseException:
                await self._shut()  # a call that we did not see to its end: nothing here can be trusted any more
                raise

    async def _call(self, source: bytes, payload: bytes, limits: Limits) -> Reply:
        assert self._link is not None
        started, nonce = time.perf_counter(), secrets.randbits(64)
        text = os.memfd_create("call", os.MFD_CLOEXEC)
        pairs = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        names: tuple[StreamName, ...] = ("stdout", "stdout", "stderr")
        keep = limits.output_bytes
        readers = [
            pump.Reader(mine, name, keep + _HEADER if place == 0 else keep)
            for place, ((mine, _), name) in enumerate(zip(pairs, names, strict=True))
        ]
        try:
            with os.fdopen(text, "wb", closefd=False) as stream:
                stream.write(source + payload)
            os.lseek(text, 0, os.SEEK_SET)
            packet = {"source": len(source), "payload": len(payload), "nonce": nonce, "limits": _limits(limits)}
            try:
                socket.send_fds(self._link, [json.dumps(packet).encode()], [*(theirs for _, theirs in pairs), text])
            except OSError as error:
                raise SandboxError(f"the zygote was lost before a call ({error.strerror}); open another") from error
            finally:
                for _, theirs in pairs:
                    os.close(theirs)
            timer = asyncio.get_running_loop().call_later(limits.wall_s, self._expire)
            watch = self._box.watch(self._init, limits, self._expire)
            try:
                end = await self._hear(self._link)
            finally:
                timer.cancel()
                if watch is not None:
                    watch.stop()
            if not end:
                raise SandboxError("the zygote was lost during a call; open another")
            for reader in readers:
                reader.drain()
        finally:
            os.close(text)
            for reader in readers:
                reader.stop()
        hit = list(self._box.seen(watch))
        await self._clean()
        if end["status"] or end["survivors"]:  # a call that ended well and alone met no limit of all together
            hit += self._met()
        end["timed_out"] = end["killed"] and not (watch and watch.hit)
        return _reply(end, readers, nonce, hit, time.perf_counter() - started)

    def _met(self) -> list[LimitName]:
        """The limits of all together that were met since this was last asked."""
        before, self._account = self._account, self._box.account()
        hit: list[LimitName] = []
        if self._account is not None:
            hit += ["memory_mib"] if self._account.memory_kills > (before.memory_kills if before else 0) else []
            hit += ["processes"] if self._account.process_refusals > (before.process_refusals if before else 0) else []
        return hit

    def _expire(self) -> None:
        if self._link is not None:
            with contextlib.suppress(OSError):  # it is gone, and with it what was to be killed
                self._link.send(b"kill")

    async def _hear(self, link: socket.socket) -> dict[str, Any]:
        await pump.readable(link.fileno())
        with contextlib.suppress(ConnectionError):
            data = link.recv(1 << 16)
            return json.loads(data) if data else {}
        return {}

    async def _clean(self) -> None:
        """Empty what a call may have written: the next one starts from the same files."""
        if self._writable:
            tree = await self._box.tree()
            for place in ("work", "tmp", "shm"):
                folder = reopened(tree.store.folder, place)
                try:
                    os.fchmod(folder, 0o755 if place == "work" else 0o1777)
                    for name in os.listdir(folder):
                        remove_tree(folder, name)
                finally:
                    os.close(folder)

    async def _shut(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
            self._init.kill()
            await self._box.end(self._init)
            for reader in (self._out, self._err):
                if reader is not None:
                    reader.stop()

    async def close(self) -> None:
        await self._shut()
        await self._box.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


def _limits(limits: Limits) -> dict[str, tuple[int, int]]:
    table = rlimits.table(limits)
    del table[resource.RLIMIT_NPROC]  # counted over the namespace, where the zygote itself lives: set for all of it
    return {_KINDS[kind]: value for kind, value in table.items()}


def _reply(
    end: Mapping[str, Any], readers: Sequence[pump.Reader], nonce: int, hit: list[LimitName], wall_s: float
) -> Reply:
    answers, out, err = readers
    frames, is_clean = _frames(bytes(answers.data), nonce)
    code = exit_code(os.waitstatus_to_exitcode(end["status"]))
    outcome: Outcome = "returned" if code == 0 else "failed" if code > 0 else "killed"
    if end["timed_out"]:
        outcome = "timed_out"
        hit.append("wall_s")
    elif answers.truncated:
        outcome = "failed"
    elif not is_clean and code >= 0:
        outcome = "tampered"
    truncated = any(reader.truncated for reader in readers)
    hit += ["cpu_s"] if code == -signal.SIGXCPU else ["file_mib"] if code == -signal.SIGXFSZ else []
    hit += ["output_bytes"] if truncated else []
    usage = Usage(wall_s, end["cpu_s"], end["rss_kib"] / 1024)
    return Reply(
        outcome,
        frames,
        code,
        bytes(out.data),
        bytes(err.data),
        truncated,
        end["survivors"],
        usage,
        tuple(dict.fromkeys(hit)),
    )


def _frames(data: bytes, nonce: int) -> tuple[tuple[bytes, ...], bool]:
    """The frames of this call, and whether they were all there was."""
    frames: list[bytes] = []
    while len(data) >= _HEADER:
        found, length = struct.unpack_from(FRAME, data)
        if found != nonce or len(data) < _HEADER + length:
            return tuple(frames), False
        frames.append(data[_HEADER : _HEADER + length])
        data = data[_HEADER + length :]
    return tuple(frames), not data
