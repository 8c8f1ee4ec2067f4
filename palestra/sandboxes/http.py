"""As much of HTTP/1.1 as the engines of sandboxes speak: one request a connection, over asyncio streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from palestra.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body) if self.body else {}


def send(
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    data: object,
    query: Mapping[str, object],
    more: Mapping[str, str],
) -> None:
    """Write one request: bytes as they are (a tar archive), anything else but None as JSON."""
    content = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
    tail = f"?{urlencode(query)}" if query else ""
    headers = {
        "Host": "sandbox",
        "Content-Type": "application/x-tar" if isinstance(data, bytes) else "application/json",
        "Content-Length": str(len(content)),
        **more,
    }
    lines = [f"{method} {quote(path)}{tail} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + content)


async def head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers (names in lower case). Raises SandboxError where they do not end."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise SandboxError(f"an engine sent headers without end ({error})") from error
    first, *lines = raw.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if ": " in line)
    return int(first.split()[1]), {name.lower(): value for name, value in headers.items()}


async def body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """The content that follows ``headers``: chunked, of a given length, or to the end."""
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        return b"".join(parts)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()
