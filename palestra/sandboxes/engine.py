"""A small client of the Docker Engine API, which Podman serves too, over its Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from palestra.errors import SandboxError
from palestra.sandboxes import http

API = "/v1.41"  # Docker 20.10 and Podman 3 onwards
SOCKETS = ("/var/run/docker.sock", "/run/podman/podman.sock")
_FRAME = 8


def find_socket() -> Path:
    """The socket of an engine: that of DOCKER_HOST, Docker's, Podman's, the user's own Podman's.

    Raises SandboxError, with the command that starts one, where there is none."""
    named = os.environ.get("DOCKER_HOST", "")
    if named and not named.startswith("unix://"):
        raise SandboxError(
            f"DOCKER_HOST is {named!r}; only unix:// is supported, since the workspace is shared as a folder"
        )
    own = f"{os.environ.get('XDG_RUNTIME_DIR', f'/run/user/{os.getuid()}')}/podman/podman.sock"
    places = [named.removeprefix("unix://")] if named else [*SOCKETS, own]
    for place in places:
        if Path(place).is_socket():
            return Path(place)
    raise SandboxError(
        f"the container back end needs Docker or Podman, and no engine listens at {', '.join(places)}; "
        "start one: systemctl start docker, or: podman system service --time=0 &"
    )


class Engine:
    """One engine, reached anew for each request: a killed engine breaks a request, not the next one."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    async def ask(self, method: str, path: str, data: object = None, **query: object) -> Any:
        """The JSON answer. Raises SandboxError with the engine's own words where it refuses."""
        async with self._connection() as (reader, writer):
            http.send(writer, method, API + path, data, query, {"Connection": "close"})
            await writer.drain()
            status, headers = await http.head(reader)
            body = await http.body(reader, headers)
        answer = http.Answer(status, headers, body)
        if status >= 400:
            raise SandboxError(f"the container engine refused {method} {path}: {_words(answer)}")
        return answer.json()

    async def build(self, folder: Path) -> str:
        """Build the Dockerfile of ``folder``, which is also its context; the image's name tells its content, so that
        the same context is built once. Raises SandboxError with the last words of the build where it fails."""
        context = _archive(folder)
        name = f"palestra/built:{hashlib.sha256(context).hexdigest()[:24]}"
        async with self._connection() as (reader, writer):
            http.send(writer, "POST", API + "/build", context, {"t": name, "rm": "1"}, {"Connection": "close"})
            await writer.drain()
            status, headers = await http.head(reader)
            answer = http.Answer(status, headers, await http.body(reader, headers))
        said = [json.loads(line) for line in answer.body.splitlines() if line.startswith(b"{")]
        errors = [turn["error"] for turn in said if "error" in turn]
        if status >= 400 or errors:
            raise SandboxError(
                f"{str(folder / 'Dockerfile')!r} does not build: {errors[-1].strip() if errors else _words(answer)}"
            )
        return name

    async def attach(
        self, path: str, data: object, stdin: bytes, hear: Callable[[Literal["stdout", "stderr"], bytes], None]
    ) -> None:
        """Start an exec with its streams on this connection, until it ends. Raises SandboxError where it is refused."""
        async with self._connection() as (reader, writer):
            http.send(writer, "POST", API + path, data, {}, {"Connection": "Upgrade", "Upgrade": "tcp"})
            await writer.drain()
            status, headers = await http.head(reader)
            if status not in (101, 200):
                answer = http.Answer(status, headers, await http.body(reader, headers))
                raise SandboxError(f"the container engine refused POST {path}: {_words(answer)}")
            feeding = asyncio.ensure_future(_feed(writer, stdin))
            try:
                # A command that ends before it has read its stdin breaks the connection; its code is asked for apart.
                with contextlib.suppress(ConnectionError):
                    async for kind, chunk in _frames(reader):
                        hear("stderr" if kind == 2 else "stdout", chunk)
            finally:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        try:
            reader, writer = await asyncio.open_unix_connection(os.fspath(self.socket))
        except OSError as error:
            raise SandboxError(f"the container engine at {self.socket} does not answer: {error.strerror}") from error
        try:
            yield reader, writer
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise SandboxError(f"the container engine at {self.socket} broke off: {error}") from error
        finally:
            writer.close()


def _archive(folder: Path) -> bytes:
    """A build context as tar. Times and owners are left out, so that the same files give the same bytes."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    if not (folder / "Dockerfile").is_file():
        raise SandboxError(f"{str(folder)!r} holds no Dockerfile; name a folder that does, or an image")
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, arcname=str(path.relative_to(folder)), recursive=False, filter=plain)
    return stream.getvalue()


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, bytes]]:
    """The streams of a process without a terminal: frames of one byte of kind, three of nothing, four of length."""
    while True:
        try:
            head = await reader.readexactly(_FRAME)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return
        yield head[0], await reader.readexactly(int.from_bytes(head[4:], "big"))


async def _feed(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(
        ConnectionError
    ):  # the command ended, or closed its stdin, before it had read all: its right
        writer.write(data)
        await writer.drain()
        writer.write_eof()


def _words(answer: http.Answer) -> str:
    try:
        return f"{answer.status} {answer.json()['message']}"
    except (ValueError, KeyError, TypeError):
        return f"{answer.status} {answer.body[:200]!r}"
