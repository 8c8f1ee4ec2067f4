"""No sandbox holds a descriptor of another one, or of the process that makes them, however many there are."""

from __future__ import annotations

import asyncio

from palestra.sandboxes import open_sandbox
from palestra.sandboxes.zygote import Zygote
from palestra.verify.visible import python_view

HELD = """
import os
fds = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
reply("\\n".join(os.readlink(fd) for fd in fds if os.path.exists(fd)).encode())
"""


async def test_many_sandboxes_at_once_hold_pipes_alone() -> None:
    async def held() -> list[str]:
        async with open_sandbox("local") as box:
            await asyncio.sleep(0.05)
            said = await box.exec(["ls", "-l", "/proc/self/fd", "/proc/1/fd"])
            again = await box.exec(["sh", "-c", "sleep 0.1; ls -l /proc/self/fd /proc/1/fd"])
        lines = (said.stdout + again.stdout).decode().splitlines()
        return [line.partition("-> ")[2] for line in lines if "-> " in line]

    for names in await asyncio.gather(*(held() for _ in range(12))):
        assert len(names) >= 6
        assert not [name for name in names if not name.startswith(("pipe:", "/dev/", "/proc/"))]


async def test_calls_of_many_zygotes_hold_their_own_pipes() -> None:
    zygotes = await asyncio.gather(*(Zygote(mounts=python_view()).start() for _ in range(5)))
    try:
        for reply in await asyncio.gather(*(zygote.call(HELD) for zygote in zygotes)):
            names = reply.frames[0].decode().split("\n")
            assert len([name for name in names if name.startswith("pipe:")]) == 3
            assert not [name for name in names if not name.startswith(("pipe:", "/dev/null", "/proc/"))]
    finally:
        for zygote in zygotes:
            await zygote.close()
