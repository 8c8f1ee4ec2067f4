"""The container back end against exchanges recorded from a real engine, and against a real one where there is one."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, Mount
from palestra.sandboxes.conformance import run
from palestra.sandboxes.container import ContainerSandbox
from tests.sandboxes.engine_replay import context, replaying

FOLDER = Path(__file__).parent / "recorded"
RECORDED = json.loads((FOLDER / "podman-4.3.1.json").read_text())
BUILT = json.loads((FOLDER / "podman-4.3.1-build.json").read_text())
ENGINE = "localhost/local/palestra-test:latest"


@pytest.fixture
def socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the replayed engine will listen; something must stand there when the back end looks for one."""
    import socket as sockets

    path = tmp_path / "engine.sock"
    placeholder = sockets.socket(sockets.AF_UNIX)
    placeholder.bind(str(path))
    placeholder.close()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    return path


def _answer(status: str, data: Any) -> str:
    body = json.dumps(data).encode()
    return base64.b64encode(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body).decode()


async def test_the_recorded_life_of_a_container(socket: Path) -> None:
    box = ContainerSandbox(None, (), Limits(wall_s=20), ENGINE)
    async with replaying(socket, RECORDED[:13]) as asked:
        async with box:
            result = await box.exec(["sh", "-c", "cat; echo err >&2; exit 7"], stdin=b"words\n")
            assert (result.exit_code, result.stdout, result.stderr) == (7, b"words\n", b"err\n")
            late = await box.exec(["sleep", "30"], limits=Limits(wall_s=0.2))
            assert (late.timed_out, late.exit_code, late.limits_hit) == (True, -9, ("wall_s",))
    # The very requests that the engine was recorded answering, in that order, to the end.
    assert [turn["request"] for turn in asked] == [turn["expected"] for turn in asked]
    assert len(asked) == 13 and asked[-1]["request"].startswith("DELETE ")


async def test_the_container_is_asked_for_with_every_protection(socket: Path) -> None:
    hidden = Mount(Path("/usr/share"), mask=True)
    box = ContainerSandbox(None, (Mount(Path("/usr/lib")), hidden), Limits(memory_mib=64, processes=9), ENGINE)
    async with replaying(socket, RECORDED[:2]) as asked:
        await box.start()
    host = asked[0]["body"]["HostConfig"]
    assert (host["NetworkMode"], host["CapDrop"], host["SecurityOpt"]) == ("none", ["ALL"], ["no-new-privileges"])
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (64 << 20, 64 << 20, 9)
    assert host["ReadonlyRootfs"] is True
    assert "/usr/lib:/usr/lib:ro" in host["Binds"] and host["Tmpfs"]["/usr/share"] == "ro"
    assert asked[0]["body"]["User"] == f"{os.getuid()}:{os.getgid()}"


async def test_the_engines_refusal_is_told_in_its_words(socket: Path) -> None:
    refused = [exchange for exchange in RECORDED if exchange["request"].startswith("POST /v1.41/containers/create")][-1]
    box = ContainerSandbox(None, (), Limits(), "localhost/no-such-image:none")
    async with replaying(socket, [refused]):
        with pytest.raises(SandboxError, match=r"refused POST /containers/create: 404 .*image"):
            await box.exec(["true"])
    await box.close()


async def test_an_engine_that_breaks_off_is_a_sandbox_error(socket: Path) -> None:
    box = ContainerSandbox(None, (), Limits(), ENGINE)
    broken = base64.b64encode(b"HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{").decode()
    async with replaying(socket, [{"request": "", "answer": broken}]):
        with pytest.raises(SandboxError, match="broke off"):
            await box.exec(["true"])
    await box.close()


async def test_a_container_that_cannot_be_wiped_is_restarted(socket: Path) -> None:
    fork_refused = {"request": "", "answer": _answer("500 Internal Server Error", {"message": "no more processes"})}
    restarted = {"request": "", "answer": _answer("204 No Content", {})}
    exchanges = [*RECORDED[:4], fork_refused, restarted, RECORDED[6]]
    async with replaying(socket, exchanges) as asked:
        box = ContainerSandbox(None, (), Limits(wall_s=5), ENGINE)
        await box.exec(["sh", "-c", "exit 7"])
    assert "/restart?t=0" in asked[5]["request"]
    await box.close()


def test_no_engine_names_the_command_that_starts_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such.sock")
    with pytest.raises(SandboxError, match=r"no engine listens at /no/such\.sock; start one: systemctl start docker"):
        ContainerSandbox(None, (), Limits())
    monkeypatch.setenv("DOCKER_HOST", "tcp://1.2.3.4:2375")
    with pytest.raises(SandboxError, match="only unix:// is supported"):
        ContainerSandbox(None, (), Limits())


async def test_the_conformance_suite_on_a_real_engine() -> None:
    image = os.environ.get("PALESTRA_TEST_IMAGE")
    if image is None:
        pytest.skip("PALESTRA_TEST_IMAGE names no image, so no container engine is tried")
    report = await run("container", open=lambda: ContainerSandbox(None, (), Limits(), image))
    assert [verdict for verdict in report.verdicts if verdict.status == "failed"] == []


async def test_a_recorded_build_and_the_container_of_it(socket: Path, tmp_path: Path) -> None:
    box = ContainerSandbox(None, (), Limits(wall_s=20), context(tmp_path, ENGINE))
    async with replaying(socket, BUILT[:-1]) as asked:
        async with box:
            assert (await box.exec(["cat", "/greeting"])).stdout == b"hello\nbuilt\n"
    # What was sent is what the engine was recorded building; the name of the image tells its content.
    assert [turn["request"] for turn in asked] == [turn["expected"] for turn in asked]
    assert asked[0]["body"] == BUILT[0]["body"] == [["Dockerfile", 0o644, 94], ["greeting", 0o644, 6]]
    assert asked[1]["body"]["Image"] == BUILT[1]["body"]["Image"]
    (tmp_path / "greeting").write_text("other\n")
    other = ContainerSandbox(None, (), Limits(), tmp_path)
    async with replaying(socket, BUILT[:3]) as asked:
        await other.start()
    assert asked[0]["request"] != asked[0]["expected"] and asked[1]["body"]["Image"] != BUILT[1]["body"]["Image"]


async def test_a_recorded_build_that_fails_is_told_in_the_engines_words(socket: Path, tmp_path: Path) -> None:
    box = ContainerSandbox(None, (), Limits(), context(tmp_path, ENGINE, fails=True))
    async with replaying(socket, BUILT[-1:]) as asked:
        with pytest.raises(SandboxError, match=r"Dockerfile' does not build: .*\"RUN exit 3\".*exit status 3$"):
            await box.start()
    assert asked[0]["request"] == asked[0]["expected"]
    (tmp_path / "Dockerfile").unlink()
    with pytest.raises(SandboxError, match="holds no Dockerfile"):
        await box.start()
    await box.close()
