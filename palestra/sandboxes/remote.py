"""The ``remote`` back end: an adapter over a swe-rex server (``swerex-remote``), wherever that runs.

What stands between a command and that machine is whatever the server was started in: we can only say that it is
remote. swe-rex has no stdin, no byte-exact output and no bound on it, so each command goes through a small script of
ours on the other side. A command is killed with its process group; what leaves the group outlives it. The
server hears nothing while it runs a command, so that a cancelled one is waited for, at most to its time-out.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from palestra.errors import SandboxError
from palestra.sandboxes import http, script
from palestra.sandboxes.base import ExecResult, Limits, Mount, OnOutput, Protection, Session, Snapshot
from palestra.sandboxes.pump import Ended
from palestra.sandboxes.results import result
from palestra.sandboxes.stores import Exit

URL, TOKEN = "PALESTRA_SWEREX_URL", "PALESTRA_SWEREX_TOKEN"
PROTECTIONS = (Protection.REMOTE, Protection.RLIMITS)
_CHUNK = 60_000  # of one argument, which a kernel bounds at 128 KiB
_MARGIN_S = 10.0
_INSTEAD = "the remote back end has no {}; ask for the local back end"

# $1 the workspace, $2 the request (a line and stdin), $3 seconds, $4 bytes kept.
_RUN = """cd -- "$1" || exit 125
t=$(mktemp -d) && mv -- "$2" "$t/i" || exit 125
timeout -s KILL "$3" env -i /bin/sh -c "$5" <"$t/i" >"$t/o" 2>"$t/e"
c=$?
for f in o e; do wc -c <"$t/$f"; head -c "$4" "$t/$f" | base64 -w0; echo; done
rm -rf "$t"
exit $c"""
# Find $2 under the workspace $1, links resolved; what lies outside is refused with 3.
_INSIDE = """w=$(readlink -f -- "$1") || exit 4
inside() { case "$p" in "$w"|"$w"/*) ;; *) exit 3;; esac; }
case "$2" in /*) p=$2;; *) p=$w/$2;; esac
"""
_READ = (
    _INSIDE
    + """p=$(readlink -f -- "$p") || exit 4
inside; [ -f "$p" ] || exit 5
[ "$(wc -c <"$p")" -le "$3" ] || exit 6
base64 -w0 "$p"
"""
)
_LIST = (
    _INSIDE
    + """p=$(readlink -f -- "$p") || exit 4
inside; [ -d "$p" ] && cd -- "$p" || exit 5
for f in * .[!.]* ..?*; do if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\\0' "$f"; fi; done | base64 -w0"""
)
_WRITE = (
    _INSIDE
    + """d=$(dirname -- "$p."); b=$(basename -- "$p"); p=$(readlink -m -- "$d") || exit 4
inside; mkdir -p -- "$p" || exit 7
case "$b" in .|..|/) exit 5;; esac
[ -d "$p/$b" ] && [ ! -L "$p/$b" ] && exit 5
mv -fT -- "$3" "$p/$b" || exit 7"""
)
_REFUSED = {
    3: "leaves the workspace; name a path inside it",
    4: "cannot be found",
    5: "is not of the right kind",
    6: "is larger than allowed; raise max_bytes",
    7: "cannot be written",
}


class RemoteSandbox:
    """A folder on another machine, made on opening and removed on close."""

    def __init__(self, workspace: Path | None, mounts: Sequence[Mount], limits: Limits) -> None:
        if mounts:
            raise SandboxError(_INSTEAD.format(f"mounts, so none of {str(mounts[0].source)!r}"))
        if workspace is not None:
            raise SandboxError(f"the remote back end cannot use the folder {str(workspace)!r}; write files to its own")
        url = os.environ.get(URL, "")
        self._place = urlsplit(url)
        if self._place.scheme not in ("http", "https") or not self._place.hostname:
            raise SandboxError(
                f"the remote back end needs {URL} (http://host:port of a swe-rex server), got {url!r}; start one with: "
                f"swerex-remote --auth-token SECRET, and set {TOKEN} to the secret"
            )
        self._token = os.environ.get(TOKEN, "")
        self.limits = limits
        self.workspace = ""
        self._opening = asyncio.Lock()
        self._closed = False

    async def _ask(self, path: str, data: object) -> Any:
        place = self._place
        secure = ssl.create_default_context() if place.scheme == "https" else None
        try:
            port = place.port or (443 if secure else 80)
            reader, writer = await asyncio.open_connection(place.hostname, port, ssl=secure)
            try:
                http.send(writer, "POST", path, data, {}, {"Connection": "close", "X-API-Key": self._token})
                await writer.drain()
                status, headers = await http.head(reader)
                answer = http.Answer(status, headers, await http.body(reader, headers))
            finally:
                writer.close()
        except (OSError, asyncio.IncompleteReadError) as error:
            raise SandboxError(f"the swe-rex server at {place.geturl()} does not answer: {error}") from error
        if answer.status != 200:
            words = answer.body[:300].decode(errors="replace")
            raise SandboxError(f"the swe-rex server refused {path}: {answer.status} {words}")
        return answer.json()

    async def _sh(self, text: str, *args: str, timeout_s: float = 60.0) -> tuple[int, str, str]:
        command = {"command": ["/bin/sh", "-c", text, "sh", *args], "timeout": timeout_s + _MARGIN_S}
        answer = await self._ask("/execute", command)
        return int(answer["exit_code"]), str(answer["stdout"]), str(answer["stderr"])

    async def _open(self) -> str:
        if self._closed:
            raise SandboxError("this sandbox is closed; open another with open_sandbox()")
        async with self._opening:
            if not self.workspace:
                code, said, words = await self._sh("mktemp -d")
                if code:
                    raise SandboxError(f"the remote machine could not make a folder: {words.strip()}")
                self.workspace = said.strip()
        return self.workspace

    async def _put(self, data: bytes) -> str:
        """A file over there that holds ``data``."""
        _, said, _ = await self._sh("mktemp")
        path = said.strip()
        for start in range(0, len(data), _CHUNK):
            piece = base64.b64encode(data[start : start + _CHUNK]).decode()
            code, _, words = await self._sh('printf %s "$2" | base64 -d >>"$1"', path, piece)
            if code:
                raise SandboxError(f"the remote machine could not take a file: {words.strip()}")
        return path

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
        line = script.command_line(argv, cwd, {**script.BASE_ENV, **(env or {})}, limits=limits)
        workspace = await self._open()
        await self._look(cwd)
        request = await self._put(line + stdin)
        started = time.perf_counter()
        words = (workspace, request, f"{limits.wall_s}", f"{limits.output_bytes}", script.INIT)
        work = asyncio.ensure_future(self._sh(_RUN, *words, timeout_s=limits.wall_s))
        try:
            code, said, _ = await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise
        wall = time.perf_counter() - started
        sizes_and_texts = said.split("\n")
        if len(sizes_and_texts) < 4:
            raise SandboxError(f"the remote machine could not run the command: exit {code}, {said[:200]!r}")
        out, err = (base64.b64decode(text) for text in sizes_and_texts[1:4:2])
        truncated = any(int(size) > limits.output_bytes for size in sizes_and_texts[0:4:2])
        for name, data in (("stdout", out), ("stderr", err)):
            if data and on_output is not None:
                on_output(name, data)  # type: ignore[arg-type]
        timed_out = code == 137 and wall >= limits.wall_s
        return result(Ended(Exit(code, 0.0, 0.0), out, err, timed_out, truncated, wall), limits, PROTECTIONS)

    async def _look(self, folder: str) -> str:
        return await self._asked(_LIST, folder, "")

    async def _asked(self, text: str, path: str, last: str) -> str:
        if not path or "\0" in path:
            raise SandboxError(f"{path!r} is no path: it is empty or holds a NUL byte")
        code, said, words = await self._sh(text, await self._open(), path, last)
        if code:
            raise SandboxError(f"{path!r} {_REFUSED.get(code, words.strip())}")
        return said

    async def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        return base64.b64decode(await self._asked(_READ, path, str(max_bytes)))

    async def write(self, path: str, data: bytes) -> None:
        await self._open()
        await self._asked(_WRITE, path, await self._put(data))

    async def list(self, path: str = ".") -> tuple[str, ...]:
        names = base64.b64decode(await self._asked(_LIST, path, "")).split(b"\0")[:-1]
        return tuple(sorted(name.decode("utf-8", "surrogateescape") for name in names))

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
        if self.workspace:
            with contextlib.suppress(SandboxError):  # the server is gone, and we cannot reach its machine
                await self._sh('chmod -R u+rwx "$1"; rm -rf "$1"', self.workspace)

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
