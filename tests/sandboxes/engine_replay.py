"""A Unix-socket server that gives back recorded exchanges in their order, and the recorder that wrote them.

Recorded from Podman 4.3.1 with ``python tests/sandboxes/engine_replay.py ENGINE_SOCKET OUT.json IMAGE``.
One connection is one exchange: {"request": its first line, "body": its JSON, "sent": bytes after it, "answer": bytes}.
An answer without a body to what was sent is one that the client did not wait for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any


def _plain(body: bytes) -> Any:
    """The JSON of a request; None for none, and for the archive of a build."""
    return json.loads(body) if body.startswith(b"{") else None


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


async def record(engine: str, out: Path, image: str) -> None:
    from palestra.sandboxes import Limits
    from palestra.sandboxes.container import ContainerSandbox
    from palestra.sandboxes.engine import Engine

    exchanges: list[dict[str, Any]] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, line, body = await _request(reader)
        exchange: dict[str, Any] = {"request": line, "body": json.loads(body) if body else None}
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

    socket = out.with_suffix(".sock")
    async with await asyncio.start_unix_server(relay, str(socket)):
        box = ContainerSandbox(None, (), Limits(wall_s=20), image)
        box._engine = Engine(socket)
        async with box:
            await box.exec(["sh", "-c", "cat; echo err >&2; exit 7"], stdin=b"words\n")
            await box.exec(["sleep", "30"], limits=Limits(wall_s=0.5))
        refused = ContainerSandbox(None, (), Limits(), "localhost/no-such-image:none")
        refused._engine = Engine(socket)
        with contextlib.suppress(Exception):
            await refused.start()
        await refused.close()
    out.write_text(json.dumps(exchanges, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
