"""A Unix-socket server that gives back recorded exchanges in their order, and the recorder that wrote them.

Recorded from Podman 4.3.1 with ``python -m tests.sandboxes.engine_replay ENGINE_SOCKET OUT.json IMAGE life|build``.
One connection is one exchange: {"request": its first line, "body": its JSON, or the names, modes and sizes in its
archive, "sent": bytes after it, "answer": bytes}. An answer without a body to what was sent is one that the client did
not wait for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import io
import json
import sys
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from palestra.errors import SandboxError
from palestra.sandboxes import Limits
from palestra.sandboxes.container import ContainerSandbox
from palestra.sandboxes.engine import Engine


def _plain(body: bytes) -> Any:
    """The JSON of a request, what its archive holds, or None where it has no body."""
    if not body or body.startswith(b"{"):
        return json.loads(body) if body else None
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        return [[entry.name, entry.mode, entry.size] for entry in archive]


async def _request(reader: asyncio.StreamReader) -> tuple[bytes, str, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    length = next((int(line.split(": ")[1]) for line in lines if line.lower().startswith("content-length")), 0)
    return head, lines[0], await reader.readexactly(length)


@asynccontextmanager
async def replaying(socket: Path, exchanges: list[dict[str, Any]]) -> AsyncIterator[list[dict[str, Any]]]:
    """Serve ``exchanges``; yields the list of what was asked, filled as it comes."""
    left, asked = list(exchanges), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, line, body = await _request(reader)
        exchange = left.pop(0) if left else {"answer": "", "request": "nothing more"}
        asked.append({"request": line, "body": _plain(body), "expected": exchange["request"]})
        writer.write(base64.b64decode(exchange["answer"]))
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        if exchange.get("sent"):
            asked[-1]["sent"] = base64.b64encode(await reader.read()).decode()
            if base64.b64decode(exchange["answer"]).endswith(b"\r\n\r\n"):
                await asyncio.sleep(1)  # held open, longer than the client's time-out
        writer.close()

    server = await asyncio.start_unix_server(answer, str(socket))
    async with server:
        yield asked


def context(folder: Path, image: str, *, fails: bool = False) -> Path:
    """A folder to build: the same bytes, and so the same name of the image, wherever it is made."""
    lines = f"FROM {image}\nCOPY greeting /greeting\nRUN " + ("exit 3\n" if fails else "echo built >> /greeting\n")
    for name, text in (("Dockerfile", lines), ("greeting", "hello\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return folder


async def life(socket: Path, image: str) -> None:
    async with _box(socket, image) as box:
        await box.exec(["sh", "-c", "cat; echo err >&2; exit 7"], stdin=b"words\n")
        await box.exec(["sleep", "30"], limits=Limits(wall_s=0.5))
    refused = _box(socket, "localhost/no-such-image:none")
    with contextlib.suppress(SandboxError):
        await refused.start()
    await refused.close()


async def build(socket: Path, image: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with _box(socket, context(Path(folder), image)) as box:
            await box.exec(["cat", "/greeting"])
        fails = _box(socket, context(Path(folder), image, fails=True))
        with contextlib.suppress(SandboxError):
            await fails.start()
        await fails.close()


def _box(socket: Path, image: str | Path) -> ContainerSandbox:
    box = ContainerSandbox(None, (), Limits(wall_s=20), image)
    box._engine = Engine(socket)
    return box


async def _relay(
    engine: str, exchanges: list[dict[str, Any]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Hand one connection on to the engine, and keep what was said on it."""
    head, line, body = await _request(reader)
    exchange: dict[str, Any] = {"request": line, "body": _plain(body)}
    exchanges.append(exchange)
    far_reader, far_writer = await asyncio.open_unix_connection(engine)
    far_writer.write(head + body)
    sent, answer = bytearray(), bytearray()

    async def up() -> None:
        while data := await reader.read(65536):
            sent.extend(data)
            far_writer.write(data)
        far_writer.write_eof()

    feeding = asyncio.ensure_future(up())
    while data := await far_reader.read(65536):
        answer.extend(data)
        writer.write(data)
    feeding.cancel()
    if isinstance(exchange["body"], dict) and "HostConfig" in exchange["body"]:
        exchange["body"]["HostConfig"].pop("Binds")  # folders of the machine that recorded
    exchange |= {"sent": base64.b64encode(sent).decode(), "answer": base64.b64encode(answer).decode()}
    writer.close()


async def record(engine: str, out: Path, image: str, what: Callable[[Path, str], Awaitable[None]]) -> None:
    exchanges: list[dict[str, Any]] = []
    socket = out.with_suffix(".sock")
    async with await asyncio.start_unix_server(functools.partial(_relay, engine, exchanges), str(socket)):
        await what(socket, image)
        while not all("answer" in exchange for exchange in exchanges):
            await asyncio.sleep(0.05)  # the client may have heard enough before the engine has ended
    out.write_text(json.dumps(exchanges, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], Path(sys.argv[2]), sys.argv[3], {"life": life, "build": build}[sys.argv[4]]))
