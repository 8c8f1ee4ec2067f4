"""Each test is a real attempt from inside a local sandbox. After it: the limit is named in the result, nothing of the
attempt is left running, the sandbox still works, and the host is as it was."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, open_sandbox, python_mounts
from palestra.sandboxes.base import ExecResult
from palestra.sandboxes.local import LocalSandbox

PYTHON = [sys.executable, "-I", "-c"]


@pytest.fixture
async def box() -> AsyncIterator[LocalSandbox]:
    sandbox = open_sandbox("local", mounts=python_mounts(), limits=Limits(wall_s=15))
    assert isinstance(sandbox, LocalSandbox)
    async with sandbox:
        yield sandbox
        again = await sandbox.exec(["sh", "-c", "echo works > f && cat f"])
        assert again.stdout == b"works\n", again
        assert not sandbox.is_busy
        keeper = (await sandbox.tree()).store.keeper.process.pid
        assert _descendants(keeper) == []


def _descendants(pid: int) -> list[int]:
    """Every process below ``pid``: below our keeper, those are the sandboxed ones and what launched them."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    found, grown = {pid}, True
    while grown:
        grown = False
        for child, parent in parents.items():
            if parent in found and child not in found:
                found.add(child)
                grown = True
    return sorted(found - {pid})


async def _python(box: LocalSandbox, source: str, **limits: float) -> ExecResult:
    return await box.exec([*PYTHON, source], limits=Limits(**{"wall_s": 15, **limits}))  # type: ignore[arg-type]


async def test_host_files_cannot_be_read(box: LocalSandbox) -> None:
    with tempfile.NamedTemporaryFile() as secret:
        secret.write(b"hidden")
        secret.flush()
        os.chmod(secret.name, 0o644)
        for path in (
            secret.name,
            f"/proc/1/root{secret.name}",
            f"/proc/self/root{secret.name}",
            "/etc/shadow",
            __file__,
        ):
            result = await box.exec(["cat", path])
            assert result.exit_code != 0 and not result.stdout, path


async def test_another_sandbox_cannot_be_reached(box: LocalSandbox) -> None:
    async with open_sandbox("local") as other:
        await other.write("secret", b"hidden")
        await other.exec(["sh", "-c", "echo hidden > /tmp/secret; echo hidden > /dev/shm/secret"])
        found = await box.exec(
            ["sh", "-c", "find / -name secret -type f 2>/dev/null; cat /proc/*/environ | tr '\\0' '\\n'"]
        )
    assert b"secret" not in found.stdout


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
async def test_loopback_of_the_host_cannot_be_reached(box: LocalSandbox, family: str) -> None:
    with socket.socket(getattr(socket, family)) as listener:
        address = "127.0.0.1" if family == "AF_INET" else "::1"
        try:
            listener.bind((address, 0))
        except OSError as error:
            pytest.skip(f"the host has no {family}: {error}")
        listener.listen()
        reached: list[object] = []
        thread = threading.Thread(target=lambda: reached.append(_accept(listener)))
        thread.start()
        source = f"import socket; socket.socket(socket.{family}).connect(({address!r}, {listener.getsockname()[1]}))"
        result = await _python(box, source)
        thread.join()
    assert b"ConnectionRefusedError" in result.stderr or b"OSError" in result.stderr
    assert reached == [None]


def _accept(listener: socket.socket) -> object:
    listener.settimeout(1)
    try:
        return listener.accept()
    except TimeoutError:
        return None


async def test_the_outside_cannot_be_reached(box: LocalSandbox) -> None:
    source = "import socket; s = socket.socket(); s.settimeout(2); s.connect(('192.0.2.1', 80))"
    assert b"Network is unreachable" in (await _python(box, source)).stderr


async def test_abstract_sockets_of_the_host_cannot_be_reached(box: LocalSandbox) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0palestra-test-abstract")
        listener.listen()
        result = await _python(box, r"import socket; socket.socket(socket.AF_UNIX).connect('\0palestra-test-abstract')")
    assert b"ConnectionRefusedError" in result.stderr


@pytest.mark.parametrize(
    "call",
    ["socket.AF_PACKET, socket.SOCK_RAW", "socket.AF_INET, socket.SOCK_RAW", "40, socket.SOCK_STREAM", "38, 5"],
    ids=["packet", "raw", "vsock", "kernel-crypto"],
)
async def test_unusual_sockets_are_denied(box: LocalSandbox, call: str) -> None:
    result = await _python(box, f"import socket; socket.socket({call})")
    assert result.exit_code == 1 and (b"PermissionError" in result.stderr or b"not supported" in result.stderr)


async def test_a_fork_bomb_is_held(box: LocalSandbox) -> None:
    source = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    result = await _python(box, source, wall_s=1, processes=50)
    assert result.timed_out and {"wall_s", "processes"} <= set(result.limits_hit)


async def test_a_memory_bomb_is_held(box: LocalSandbox) -> None:
    result = await _python(box, "x = b'x' * (1 << 40)", memory_mib=256)
    assert b"MemoryError" in result.stderr
    # Each fits, all together do not. They hold on until one is killed: a parent that ended sooner would end them all.
    many = (
        "import os\nr, w = os.pipe()\nfor i in range(20):\n  if os.fork() == 0:\n"
        "    os.close(w); x = b'x' * (60 << 20); os.read(r, 1); os._exit(0)\n"
        "os.wait(); os.close(w)\nfor i in range(19): os.wait()"
    )
    result = await _python(box, many, memory_mib=256)
    assert "memory_mib" in result.limits_hit and not result.timed_out
    if result.usage.peak_memory_mib is not None:
        assert result.usage.peak_memory_mib <= 256


@pytest.mark.parametrize("where", ["/workspace", "/tmp", "/dev/shm"])
async def test_the_disk_cannot_be_filled(where: str) -> None:
    source = "i = 0\nwhile True:\n  i += 1\n  open(f'f{i}', 'wb').write(bytes(1 << 24))"
    async with open_sandbox("local", mounts=python_mounts(), limits=Limits(disk_mib=64)) as small:
        result = await small.exec(["sh", "-c", f'cd {where} && exec {sys.executable} -I -c "$0"', source])
        assert b"No space left on device" in result.stderr
        assert (await small.exec(["sh", "-c", f"rm {where}/f*; echo x > f && cat f"])).stdout == b"x\n"


async def test_a_sparse_file_takes_no_space_and_is_not_read(box: LocalSandbox) -> None:
    result = await box.exec(["truncate", "-s", "10G", "sparse"], limits=Limits(file_mib=None))
    assert result.exit_code == 0
    with pytest.raises(SandboxError, match="more than the"):
        await box.read("sparse")
    assert (await box.exec(["truncate", "-s", "10G", "other"])).limits_hit == ("file_mib",)


async def test_a_flood_of_output_is_held(box: LocalSandbox) -> None:
    result = await box.exec(["head", "-c", "1073741824", "/dev/zero"], limits=Limits(output_bytes=4096, wall_s=30))
    assert (result.exit_code, len(result.stdout), result.limits_hit) == (0, 4096, ("output_bytes",))


@pytest.mark.parametrize(
    "leave",
    ["setsid sh -c '{}' &", "nohup sh -c '{}' >/dev/null 2>&1 &", "(sh -c '{}' &) &", "trap '' TERM HUP; sh -c '{}' &"],
    ids=["setsid", "nohup", "double-fork", "ignoring"],
)
async def test_nothing_survives_a_command(box: LocalSandbox, leave: str) -> None:
    await box.exec(["sh", "-c", leave.format("sleep 0.3; touch /workspace/late")])
    await box.exec(["sleep", "0.5"])
    assert await box.list() == ()


@pytest.mark.parametrize("trick", ["trap '' TERM INT HUP; while :; do :; done", "kill -STOP $$", "exec sleep 99"])
async def test_a_time_out_ends_what_resists(box: LocalSandbox, trick: str) -> None:
    result = await box.exec(["sh", "-c", trick], limits=Limits(wall_s=0.3))
    assert (result.timed_out, result.exit_code) == (True, -9) and result.usage.wall_s < 30


async def test_inodes_cannot_be_filled() -> None:
    source = "i = 0\nwhile True:\n  open(f'n{i}', 'w').close()\n  i += 1"
    async with open_sandbox("local", mounts=python_mounts(), limits=Limits(disk_mib=16)) as small:
        assert b"No space left on device" in (await small.exec([*PYTHON, source])).stderr
        assert (await small.exec(["sh", "-c", "ls | xargs rm; echo x > f && cat f"])).stdout == b"x\n"


async def test_deep_folders_are_removed(box: LocalSandbox) -> None:
    source = "import os\nfor i in range(3000):\n  os.mkdir('d'); os.chdir('d')"
    assert (await _python(box, source)).exit_code == 0


async def test_odd_names_come_back(box: LocalSandbox) -> None:
    await _python(box, r"open(b'a\nb', 'w'); open(b'\xff\xfe', 'w'); open(' ', 'w')")
    assert [os.fsencode(name) for name in await box.list()] == [b" ", b"a\nb", b"\xff\xfe"]


async def test_the_clock_cannot_be_set(box: LocalSandbox) -> None:
    assert b"PermissionError" in (await _python(box, "import time; time.clock_settime(time.CLOCK_REALTIME, 0)")).stderr


async def test_preloading_does_not_reach_the_launcher(box: LocalSandbox) -> None:
    names = ("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "BASH_ENV", "ENV", "PYTHONSTARTUP")
    result = await box.exec(["env"], env={name: "/workspace/evil" for name in names})
    assert all(f"{name}=/workspace/evil".encode() in result.stdout for name in names) and result.exit_code == 0


async def test_killing_everything_ends_the_command_alone(box: LocalSandbox) -> None:
    result = await _python(box, "import os\nos.kill(-1, 9)\nos.kill(1, 9)\nos.kill(1, 15)")
    assert result.exit_code in (0, 1)  # with nobody else to kill, kill(-1) fails


async def test_tracing_is_denied(box: LocalSandbox) -> None:
    source = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.ptrace(16, 1, 0, 0), ctypes.get_errno())"
    assert (await _python(box, source)).stdout == b"-1 1\n"


async def test_memory_cannot_be_written_through_proc(box: LocalSandbox) -> None:
    for path in ("/proc/1/mem", "/proc/self/mem"):
        assert b"Error" in (await _python(box, f"open({path!r}, 'r+b')")).stderr


@pytest.mark.parametrize("path", ["kernel/core_pattern", "kernel/modprobe", "vm/drop_caches", "kernel/hostname"])
async def test_the_kernel_cannot_be_tuned(box: LocalSandbox, path: str) -> None:
    """Opened for writing only: real root's number owns these files, so nothing but the read-only mount denies it."""
    assert b"Error" in (await _python(box, f"import os; os.open('/proc/sys/{path}', os.O_WRONLY)")).stderr


async def test_namespaces_are_denied(box: LocalSandbox) -> None:
    source = "import ctypes\nfor f in (0x10000000, 0x20000, 0x40000000): print(ctypes.CDLL(None).unshare(f))"
    assert (await _python(box, source)).stdout == b"-1\n-1\n-1\n"


async def test_huge_arguments_and_environment_fail_inside(box: LocalSandbox) -> None:
    result = await box.exec(["true", "x" * (1 << 18)])
    assert result.exit_code == 126
    result = await box.exec(["true"], env={"X": "x" * (1 << 18)})
    assert result.exit_code == 126


async def test_output_descriptors_can_be_closed(box: LocalSandbox) -> None:
    result = await _python(box, "import os, time; os.close(0); os.close(1); os.close(2); time.sleep(0.2)")
    assert (result.exit_code, result.timed_out) == (0, False)


async def test_a_reader_of_stdin_meets_its_end(box: LocalSandbox) -> None:
    result = await box.exec(["cat"], limits=Limits(wall_s=2))
    assert (result.exit_code, result.timed_out) == (0, False)


async def test_links_swapped_during_reads_never_lead_out(box: LocalSandbox) -> None:
    """A program swaps a folder and a link to /etc while we read through it, for half a second."""
    import asyncio

    source = (
        "import os, time\nos.mkdir('real'); open('real/passwd', 'w').write('inside'); os.symlink('/etc', 'link')\n"
        "end = time.time() + 0.5\nwhile time.time() < end:\n"
        "  os.rename('real', 'd'); os.rename('d', 'real'); os.rename('link', 'd'); os.rename('d', 'link')"
    )
    work = asyncio.ensure_future(_python(box, source))
    seen = set()
    while not work.done():
        try:
            seen.add(await box.read("d/passwd"))
        except SandboxError:
            seen.add(b"refused")
        await asyncio.sleep(0)
    assert (await work).exit_code == 0 and seen <= {b"inside", b"refused"} and b"inside" in seen


async def test_the_host_keeps_its_files(box: LocalSandbox) -> None:
    """Everything that can be deleted from inside is the sandbox's own."""
    await box.exec(["sh", "-c", "rm -rf /usr/bin /etc /bin /lib /proc /dev /home /root /var 2>/dev/null"])
    assert Path(sys.executable).exists() and Path("/usr/bin/env").exists() and Path(__file__).exists()
