"""The forking interpreter: what a call can say, what it cannot do to the next one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, Mount
from palestra.sandboxes.abilities import _pythons
from palestra.sandboxes.zygote import Zygote

FAST = Limits(wall_s=10)


@pytest.fixture
async def zygote() -> AsyncIterator[Zygote]:
    async with Zygote(preload=("json",), limits=FAST) as running:
        yield running
        reply = await running.call("reply(CALL + b'!')", b"still here")
        assert (reply.outcome, reply.frames, reply.survivors) == ("returned", (b"still here!",), 0)


async def test_a_call_gets_its_payload_and_replies_in_frames(zygote: Zygote) -> None:
    reply = await zygote.call("import json\nfor x in json.loads(CALL): reply(json.dumps(x * x).encode())", b"[1, 2, 3]")
    assert (reply.outcome, reply.frames, reply.exit_code) == ("returned", (b"1", b"4", b"9"), 0)


async def test_streams_are_apart_from_replies(zygote: Zygote) -> None:
    reply = await zygote.call("import sys; print('out'); print('err', file=sys.stderr); reply(b'')")
    assert (reply.stdout, reply.stderr, reply.frames) == (b"out\n", b"err\n", (b"",))


async def test_calls_do_not_see_each_other(zygote: Zygote) -> None:
    await zygote.call("import builtins, json; builtins.leak = json.leak = 1")
    reply = await zygote.call(
        "import builtins, json; reply(repr((hasattr(builtins, 'leak'), hasattr(json, 'leak'))).encode())"
    )
    assert reply.frames == (b"(False, False)",)


async def test_raising_and_exiting_are_told_apart(zygote: Zygote) -> None:
    raised = await zygote.call("raise ValueError('why')")
    assert (raised.outcome, raised.exit_code) == ("failed", 1) and b"ValueError: why" in raised.stderr
    assert (await zygote.call("import sys; sys.exit(3)")).exit_code == 3
    assert (await zygote.call("import os; os._exit(0)")).outcome == "returned"
    assert (await zygote.call("def")).outcome == "failed"


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        ("while True: pass", "timed_out"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timed_out"),
        ("import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass", "timed_out"),
        ("import ctypes; ctypes.string_at(0)", "killed"),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
    ],
)
async def test_what_does_not_end_well(zygote: Zygote, source: str, outcome: str) -> None:
    reply = await zygote.call(source, limits=Limits(wall_s=0.4))
    assert reply.outcome == outcome and ("wall_s" in reply.limits_hit) == (outcome == "timed_out")


async def test_survivors_are_killed_before_the_next_call(zygote: Zygote) -> None:
    fork = (
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: pass\n  time.sleep(60)\nreply(b'x')"
    )
    reply = await zygote.call(fork)
    assert reply.frames == (b"x",) and reply.survivors >= 1
    alone = await zygote.call("import os; reply(repr(sorted(filter(str.isdigit, os.listdir('/proc')))).encode())")
    assert len(json.loads(alone.frames[0].replace(b"'", b'"'))) == 2  # process 1 and the call itself


async def test_threads_do_not_hold_a_call(zygote: Zygote) -> None:
    reply = await zygote.call(
        "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); reply(b'1')"
    )
    assert reply.outcome == "returned" and reply.usage.wall_s < 5


async def test_process_1_cannot_be_harmed_or_read(zygote: Zygote) -> None:
    source = """
import os
import signal
held = []
for work in (lambda: open('/proc/1/mem', 'rb'), lambda: os.readlink('/proc/1/fd/6'), lambda: os.kill(-1, 9)):
    try: work()
    except OSError as error: held.append(type(error).__name__)
for number in (2, 9, 15, 19): os.kill(1, number)
reply(repr(held).encode())
"""
    assert (await zygote.call(source)).frames == (b"['PermissionError', 'PermissionError', 'ProcessLookupError']",)


async def test_another_voice_on_the_result_descriptor_is_tampering(zygote: Zygote) -> None:
    source = """
import os
import signal
reply(b'true')
for fd in range(3, 64):
  try: os.write(fd, b'forged verdict, long enough')
  except OSError: pass
"""
    reply = await zygote.call(source)
    assert (reply.outcome, reply.frames) == ("tampered", (b"true",))


async def test_closing_every_descriptor_is_no_reply(zygote: Zygote) -> None:
    reply = await zygote.call("import os\nos.closerange(0, 256)\ntry: reply(b'x')\nfinally: os._exit(0)")
    assert (reply.outcome, reply.frames) == ("returned", ())


async def test_files_cannot_be_left_for_the_next_call(zygote: Zygote) -> None:
    source = """
for d in ('/tmp', '/workspace', '/dev/shm', '/'):
  try: open(d + '/x', 'w'); reply(d.encode())
  except OSError: pass
"""
    assert (await zygote.call(source)).frames == ()


async def test_what_lies_below_tmp_on_the_host_can_be_shown_there(tmp_path: Path) -> None:
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "a.txt").write_text("shown")
    inside = Path("/tmp/some/where/a.txt")
    async with Zygote(mounts=(Mount(tmp_path / "seen" / "a.txt", inside),), limits=FAST) as zygote:
        reply = await zygote.call(f"reply(open({str(inside)!r}, 'rb').read()); open('/tmp/new', 'w')")
        assert (reply.outcome, reply.frames) == ("failed", (b"shown",)) and b"Read-only" in reply.stderr


async def test_writable_files_are_gone_at_the_next_call() -> None:
    async with Zygote(writable=True, limits=FAST) as zygote:
        leave = """
import os
import signal
for d in ('/tmp', '/workspace', '/dev/shm'):
  os.makedirs(d + '/a/b'); os.chmod(d + '/a', 0); os.chmod(d, 0)
"""
        assert (await zygote.call(leave)).outcome == "returned"
        seen = await zygote.call(
            "import os; reply(repr([os.listdir(d) for d in ('/tmp', '/workspace', '/dev/shm')]).encode())"
        )
        assert seen.frames == (b"[[], [], []]",)


async def test_limits_are_each_calls_own(zygote: Zygote) -> None:
    hog = "x = b'x' * (300 << 20)"
    assert b"MemoryError" in (await zygote.call(hog, limits=Limits(memory_mib=200))).stderr
    assert (await zygote.call(hog, limits=Limits(memory_mib=1000))).outcome == "returned"
    burn = await zygote.call("while True: pass", limits=Limits(cpu_s=1, wall_s=8))
    assert (burn.outcome, burn.limits_hit) == ("killed", ("cpu_s",))
    flood = await zygote.call("print('x' * 100000)", limits=Limits(output_bytes=100))
    assert (len(flood.stdout), flood.limits_hit) == (100, ("output_bytes",))


async def test_a_cancelled_call_ends_the_zygote(zygote: Zygote) -> None:
    other = Zygote(limits=FAST)
    async with other:
        task = asyncio.ensure_future(other.call("while True: pass"))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(SandboxError, match="not running"):
            await other.call("reply(b'')")


async def test_a_module_that_is_not_there_is_told_in_its_words() -> None:
    with pytest.raises(SandboxError, match="No module named 'no_such_module'"):
        async with Zygote(preload=("no_such_module",)):
            pass


def test_an_absent_interpreter_is_an_error_with_a_way_out() -> None:
    with pytest.raises(SandboxError, match=r"'/no/python' cannot be found.*name its full path"):
        Zygote("/no/python")


@pytest.mark.parametrize("version", [(3, 8), (3, 9), (3, 10), (3, 12), (3, 13)], ids=str)
async def test_other_interpreters(version: tuple[int, int]) -> None:
    found = [path for numbers, path in _pythons() if numbers[:2] == version]
    if not found:
        pytest.skip(f"no Python {version[0]}.{version[1]} on this machine")
    async with Zygote(found[0], limits=FAST) as zygote:
        reply = await zygote.call("import sys; reply(repr(sys.version_info[:2]).encode())")
    assert reply.frames == (repr(version).encode(),)


async def test_nothing_is_left_of_a_hundred_calls() -> None:
    async with Zygote(limits=FAST) as zygote:
        await zygote.call("reply(b'')")
        before = len(os.listdir("/proc/self/fd"))
        for number in range(100):
            assert (await zygote.call("reply(CALL)", str(number).encode())).frames == (str(number).encode(),)
        assert len(os.listdir("/proc/self/fd")) == before
        assert sys.version_info[:3] == zygote.version


async def test_a_kill_that_comes_too_late_harms_no_later_call(zygote: Zygote) -> None:
    zygote._expire()
    zygote._expire()
    assert (await zygote.call("reply(b'1')")).frames == (b"1",)


async def test_a_lost_zygote_is_an_error_of_ours() -> None:
    async with Zygote(limits=FAST) as zygote:
        os.kill(zygote._init.pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match=r"lost|not running"):
            await zygote.call("reply(b'1')")
