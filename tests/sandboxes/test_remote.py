"""The remote back end against exchanges recorded from a real swe-rex server (1.4.0), and against a real one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, Mount, conformance, open_sandbox
from palestra.sandboxes.remote import TOKEN, URL

RECORDED = json.loads((Path(__file__).parent / "recorded" / "swerex-1.4.0.json").read_text())


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Any]]:
    """A server that gives back what was recorded, in that order; the value is what it was asked."""
    left, heard = list(RECORDED), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line.split(": ")[1]) for line in head.split("\r\n") if line.startswith("Content-Length"))
        exchange = left.pop(0)
        heard.append({"path": head.split()[1], "expected": exchange["path"], "key": "X-API-Key: tok" in head})
        heard[-1]["body"] = json.loads(await reader.readexactly(length))
        body = json.dumps(exchange["answer"]).encode()
        writer.write(f"HTTP/1.1 {exchange['status']} OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    monkeypatch.setenv(URL, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    monkeypatch.setenv(TOKEN, "tok")
    async with server:
        yield heard


async def test_the_recorded_life_of_a_remote_sandbox(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_sandbox("remote") as box:
        await box.write("d/f", b"\x00\xff")
        result = await box.exec(["sh", "-c", "cat; echo err >&2; exit 7"], cwd="d", stdin=b"words\n")
        assert (result.exit_code, result.stdout, result.stderr) == (7, b"words\n", b"err\n")
        assert result.protections == ("remote", "rlimits")
        assert await box.read("d/f") == b"\x00\xff"
        assert await box.list("d") == ("f",)
        with pytest.raises(SandboxError, match=r"'\.\./x' leaves the workspace"):
            await box.read("../x")
        late = await box.exec(["sleep", "30"], limits=Limits(wall_s=1e-6))  # the recorded one was cut at 0.3 s
        assert (late.timed_out, late.exit_code, late.limits_hit) == (True, -9, ("wall_s",))
    assert all(turn["path"] == turn["expected"] and turn["key"] for turn in asked)
    monkeypatch.setenv(TOKEN, "wrong")
    with pytest.raises(SandboxError, match="refused /execute: 401"):
        await open_sandbox("remote").exec(["true"])


async def test_a_server_that_is_not_there_is_a_sandbox_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, "http://127.0.0.1:9")
    with pytest.raises(SandboxError, match="does not answer"):
        await open_sandbox("remote").exec(["true"])


def test_what_it_cannot_do_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(URL, "http://127.0.0.1:9")
    with pytest.raises(SandboxError, match="no mounts"):
        open_sandbox("remote", mounts=(Mount(Path("/usr")),))
    with pytest.raises(SandboxError, match="cannot use the folder"):
        open_sandbox("remote", workspace=tmp_path)
    monkeypatch.delenv(URL)
    with pytest.raises(SandboxError, match=r"needs PALESTRA_SWEREX_URL.*swerex-remote --auth-token"):
        open_sandbox("remote")


async def test_the_conformance_suite_on_a_real_server() -> None:
    if URL not in os.environ:
        pytest.skip(f"{URL} names no swe-rex server, so none is tried")
    report = await conformance.run("remote")
    assert [verdict for verdict in report.verdicts if verdict.status == "failed"] == []
