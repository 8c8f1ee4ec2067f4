"""Ways out of a workspace through ``read``, ``write`` and ``list``: each is refused, and the host stays as it was."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import open_sandbox
from palestra.sandboxes.base import Sandbox


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """A sandbox in a folder of the host, a secret beside it."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "work").mkdir()
    async with open_sandbox("local", workspace=tmp_path / "work") as sandbox:
        yield sandbox
        assert (tmp_path / "secret").read_text() == "secret"
        assert sorted(os.listdir(tmp_path)) == ["secret", "work"]


@pytest.mark.parametrize(
    "path",
    ["../secret", "a/../../secret", "./.././secret", "/etc/hostname", "/workspace/../etc/hostname", "a/b/../../.."],
)
async def test_names_that_lead_out_are_refused(box: Sandbox, path: str) -> None:
    await box.write("a/b/c", b"x")
    for asked in (box.read(path), box.list(path), box.write(path + "/new", b"x")):
        with pytest.raises(SandboxError):
            await asked


@pytest.mark.parametrize(
    ("link", "asked"),
    [
        ("ln -s ../secret out", "out"),
        ("ln -s /etc/hostname out", "out"),
        ("ln -s .. out", "out/secret"),
        ("ln -s / out", "out/etc/hostname"),
        ("mkdir -p a; ln -s ../../secret a/out", "a/out"),
        ("ln -s two one; ln -s ../secret two", "one"),
        ("ln -s /proc/self/root/etc/hostname out", "out"),
        ("ln -s /proc/1/cwd out", "out/f"),
        ("ln -s loop loop", "loop"),
    ],
)
async def test_links_that_lead_out_are_refused(box: Sandbox, link: str, asked: str) -> None:
    assert (await box.exec(["sh", "-c", link])).exit_code == 0
    with pytest.raises(SandboxError):
        await box.read(asked)


async def test_writing_to_a_link_replaces_it(box: Sandbox, tmp_path: Path) -> None:
    await box.exec(["sh", "-c", "ln -s ../secret out; ln -s .. folder"])
    await box.write("out", b"mine")
    assert await box.read("out") == b"mine" and not (tmp_path / "work/out").is_symlink()
    with pytest.raises(SandboxError, match="leaves the workspace"):
        await box.write("folder/secret", b"mine")


async def test_a_hard_link_to_a_file_of_the_host_cannot_be_made(box: Sandbox) -> None:
    for target in ("/etc/hostname", "/usr/bin/env", "/bin/sh", "/proc/self/exe"):
        made = await box.exec(["sh", "-c", f"ln {target} hard || ln -L {target} hard"])
        assert made.exit_code != 0, target
    assert "hard" not in await box.list()


async def test_a_write_leaves_the_other_names_of_a_file_alone(box: Sandbox) -> None:
    await box.exec(["sh", "-c", "echo old > one; ln one two"])
    await box.write("two", b"new")
    assert (await box.read("one"), await box.read("two")) == (b"old\n", b"new")


@pytest.mark.parametrize("what", ["mkfifo it", "mkdir it", "ln -s /dev/zero it", "ln -s /dev/stdin it"])
async def test_what_is_no_regular_file_is_not_read(box: Sandbox, what: str) -> None:
    await box.exec(["sh", "-c", what])
    with pytest.raises(SandboxError):
        await box.read("it")
