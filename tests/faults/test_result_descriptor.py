"""Attacks on the descriptor that carries a call's replies: closing it, taking it over, writing to it, flooding it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from palestra.sandboxes import Limits
from palestra.sandboxes.zygote import Zygote

FIND = "import os, struct\nown = [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')]\n"
SMALL = Limits(wall_s=2, output_bytes=1 << 16, processes=32, memory_mib=512)


@pytest.fixture
async def zygote() -> AsyncIterator[Zygote]:
    async with Zygote(limits=SMALL) as made:
        yield made
        again = await made.call("reply(b'works')")
        assert (again.outcome, again.frames, again.survivors) == ("returned", (b"works",), 0)


@pytest.mark.parametrize(
    ("attack", "outcomes", "frames"),
    [
        ("for fd in own: os.close(fd)\nreply(b'late')", {"failed"}, ()),
        ("for fd in own: os.dup2(os.open('/dev/null', os.O_WRONLY), fd)\nreply(b'lost')", {"returned"}, ()),
        ("reply(b'true')\nfor fd in own: os.write(fd, b'1')", {"tampered"}, (b"true",)),
        ("for fd in own: os.write(fd, struct.pack('!QI', 0, 4) + b'fake')", {"tampered"}, ()),
        ("for fd in own: os.write(fd, struct.pack('!QI', 0, 2**32 - 1))", {"tampered"}, ()),
        ("for fd in own:\n  while True: os.write(fd, b'0' * 65536)", {"timed_out", "failed", "tampered"}, ()),
        (
            "import os\nif os.fork() == 0:\n  [os.write(fd, b'x') for fd in own]\n  os._exit(0)\nos.wait()",
            {"tampered"},
            (),
        ),
        ("reply(b'a')\nfor fd in own: os.ftruncate(fd, 0)", {"failed"}, (b"a",)),
        ("import fcntl\nfor fd in own: fcntl.fcntl(fd, 1031, 4096)\nreply(b'a')", {"returned"}, (b"a",)),
    ],
)
async def test_no_reply_is_forged(zygote: Zygote, attack: str, outcomes: set[str], frames: tuple[bytes, ...]) -> None:
    made = await zygote.call(FIND + attack)
    assert made.outcome in outcomes and made.frames == frames, made


async def test_a_reply_held_back_by_a_survivor_does_not_hold_the_call(zygote: Zygote) -> None:
    made = await zygote.call(FIND + "if os.fork() == 0:\n  import time; time.sleep(60)\nreply(b'done')")
    assert (made.outcome, made.frames, made.survivors) == ("returned", (b"done",), 1)


async def test_the_nonce_is_another_one_in_every_call(zygote: Zygote) -> None:
    look = FIND + "import sys\nf = sys._getframe()\nnames = [repr(c.cell_contents) for c in reply.__closure__]\n"
    seen = [(await zygote.call(look + "print(names)")).stdout for _ in range(2)]
    assert seen[0] != seen[1]
