"""The local back end end to end, small."""

from __future__ import annotations

import sys

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, open_sandbox, python_mounts


async def test_python_runs_inside_with_stdin_and_environment() -> None:
    async with open_sandbox("local", mounts=python_mounts()) as box:
        await box.write("worker.py", b"import os, sys; print(os.environ['X'], sys.stdin.read()); sys.exit(3)")
        result = await box.exec([sys.executable, "-I", "worker.py"], stdin=b"a\nb", env={"X": "one\n'two'"})
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"one\n'two' a\nb\n", b"")


async def test_a_builtin_name_means_the_program() -> None:
    async with open_sandbox("local") as box:
        assert (await box.exec(["echo", "-n", "x"])).stdout == b"x"
        assert (await box.exec(["cd", "/"])).exit_code == 127


async def test_the_time_out_kills_what_left_its_session() -> None:
    async with open_sandbox("local") as box:
        result = await box.exec(["sh", "-c", "setsid sleep 60 & sleep 60"], limits=Limits(wall_s=0.2))
    assert (result.timed_out, result.exit_code) == (True, -9)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "w/../../x", "/workspace/../etc/passwd"])
async def test_paths_stay_inside(path: str) -> None:
    async with open_sandbox("local") as box:
        await box.write("w/f", b"")
        with pytest.raises(SandboxError, match="leaves the workspace"):
            await box.read(path)


def test_an_unknown_back_end_names_the_nearest() -> None:
    with pytest.raises(SandboxError, match="did you mean local"):
        open_sandbox("locl")
