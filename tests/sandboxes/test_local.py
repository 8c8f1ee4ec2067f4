"""The local back end: what it shows of the host, what it refuses, what it leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palestra.errors import SandboxError
from palestra.sandboxes import Limits, Mount, bwrap, cgroups, janitor, open_sandbox, python_mounts, stores
from palestra.sandboxes.base import Protection
from palestra.sandboxes.local import LocalSandbox
from palestra.sandboxes.watch import Watch


async def test_only_what_an_interpreter_needs_is_shown() -> None:
    mounts = python_mounts()
    async with open_sandbox("local", mounts=mounts) as box:
        ran = await box.exec([sys.executable, "-I", "-c", "import ssl, sqlite3, ctypes, json; print('ok')"])
        assert ran.stdout == b"ok\n", ran.stderr
        here = await box.exec(["ls", str(Path(__file__).parent)])
        assert here.exit_code != 0
        etc = (await box.exec(["ls", "/etc"])).stdout.decode().split()
    assert set(etc) <= {Path(path).name if path.count("/") == 2 else "ssl" for path in bwrap.ETC}


async def test_a_mask_hides_a_folder_of_a_mount() -> None:
    async with open_sandbox("local", mounts=(Mount(Path("/usr/share"), mask=True),)) as box:
        assert (await box.exec(["ls", "-A", "/usr/share"])).stdout == b""
        assert (await box.exec(["touch", "/usr/share/x"])).exit_code != 0


async def test_a_mount_appears_at_its_target_read_only(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    async with open_sandbox("local", mounts=(Mount(tmp_path, Path("/data")),)) as box:
        assert (await box.exec(["cat", "/data/f"])).stdout == b"x"
        assert (await box.exec(["touch", "/data/g"])).exit_code != 0
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


async def test_a_given_workspace_is_worked_in_and_left(tmp_path: Path) -> None:
    async with open_sandbox("local", workspace=tmp_path) as box:
        await box.write("a", b"1")
        await box.exec(["sh", "-c", "echo 2 > b"])
        copy = await box.snapshot()
        assert (copy.how, copy.copied_bytes) in (("copy", 3), ("reflink", 0))
        await box.write("a", b"changed")
        async with await box.fork(copy) as child:
            assert (await child.read("a"), await child.read("b")) == (b"1", b"2\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


async def test_a_given_workspace_has_a_disk_watchdog(tmp_path: Path) -> None:
    limits = Limits(disk_mib=20, file_mib=None, wall_s=20)
    async with open_sandbox("local", workspace=tmp_path, limits=limits) as box:
        result = await box.exec(
            ["sh", "-c", "for i in $(seq 200); do head -c 1000000 /dev/zero > f$i; sleep 0.01; done"]
        )
    assert (result.exit_code, result.limits_hit) == (-9, ("disk_mib",))
    assert Protection.WATCHDOG in result.protections and Protection.DISK_LIMIT not in result.protections


@pytest.mark.parametrize(
    ("script", "watched"),
    [
        ("for i in 1 2 3 4 5 6; do sleep 9 & done; wait", Limits(processes=3, memory_mib=None)),
        ("x=$(head -c 30000000 /dev/zero | tr '\\0' a); sleep 9", Limits(processes=None, memory_mib=20)),
    ],
    ids=["processes", "memory_mib"],
)
async def test_the_watchdog_kills_what_is_too_large(
    script: str, watched: Limits, request: pytest.FixtureRequest
) -> None:
    async with LocalSandbox(None, (), Limits(wall_s=9)) as box:
        init = await box.begin(Limits(wall_s=9))
        watch = Watch(watched, init.kill, init.namespace, None)
        watch.start()
        from palestra.sandboxes import script as lines

        ended = await init.run(lines.command_line(["sh", "-c", script], ".", lines.BASE_ENV), Limits(wall_s=9), None)
        watch.stop()
        await box.end(init)
    assert watch.hit == [request.node.callspec.id] and not ended.timed_out


async def test_a_killed_keeper_is_an_error_and_then_replaced() -> None:
    async with open_sandbox("local") as box:
        assert isinstance(box, LocalSandbox)
        task = asyncio.ensure_future(box.exec(["sleep", "30"]))
        await asyncio.sleep(0.1)
        os.kill((await box.tree()).store.keeper.process.pid, signal.SIGKILL)
        with pytest.raises(SandboxError, match="keeper was killed"):
            await asyncio.wait_for(task, 5)
    async with open_sandbox("local") as box:
        assert (await box.exec(["true"])).exit_code == 0


def test_a_killed_owner_leaves_nothing_that_the_next_does_not_remove(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom palestra.sandboxes import open_sandbox\n"
        "async def main():\n  async with open_sandbox('local') as a, open_sandbox('process') as b:\n"
        "    task = asyncio.ensure_future(a.exec(['sleep', '300.125']))\n    await b.write('f', b'x')\n"
        "    await asyncio.sleep(0.3); print('up', flush=True); await task\nasyncio.run(main())"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == b"up\n"
        left = len(list(tmp_path.iterdir()))
        owner.kill()
    assert left == 2
    for _ in range(100):
        if not [entry for entry in tmp_path.iterdir() if "keeper" in entry.name]:
            break
        time.sleep(0.02)  # the keeper sees the end of its owner and goes
    assert not _running(b"300.125")
    assert [name.split("-")[1] for name in janitor.sweep_folders(tmp_path)] == ["process"]
    assert list(tmp_path.iterdir()) == []


def _running(word: bytes) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word in path.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_the_janitor_touches_only_what_is_ours_and_abandoned(tmp_path: Path) -> None:
    mine = janitor.name("process") + "x"
    namespace = os.stat("/proc/self/ns/pid").st_ino
    dead, elsewhere = f"palestra-process-{namespace}-{os.getpid()}-1-x", f"palestra-process-1-{os.getpid()}-1-x"
    for name in (mine, dead, elsewhere, "palestra-process-other", "unrelated"):
        (tmp_path / name / "inner").mkdir(parents=True)
    assert janitor.sweep_folders(tmp_path) == [dead]
    assert {path.name for path in tmp_path.iterdir()} == {mine, elsewhere, "palestra-process-other", "unrelated"}


def test_version_2_groups_are_sought_where_they_are_handed_down(tmp_path: Path) -> None:
    own = tmp_path / "user" / "session"
    own.mkdir(parents=True)
    for place, handed in ((tmp_path, "cpu memory pids"), (tmp_path / "user", "memory"), (own, "")):
        (place / "cgroup.subtree_control").write_text(handed)
    found = cgroups._unified(tmp_path, own)
    assert found is not None and found.version == 2 and set(found.parents.values()) == {tmp_path}
    (tmp_path / "cgroup.subtree_control").write_text("cpu")
    assert cgroups._unified(tmp_path, own) is None


def test_a_missing_bubblewrap_names_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    bwrap.find_bwrap.cache_clear()
    try:
        with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
            open_sandbox("local")
    finally:
        bwrap.find_bwrap.cache_clear()


def test_bad_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="must be an existing folder"):
        open_sandbox("local", workspace=tmp_path / "absent")
    with pytest.raises(SandboxError, match="has no mounts"):
        open_sandbox("process", mounts=(Mount(Path("/usr"), Path("/other")),))


async def test_a_mount_that_is_not_there_is_refused() -> None:
    async with open_sandbox("local", mounts=(Mount(Path("/no/such")),)) as box:
        with pytest.raises(SandboxError, match="'/no/such' does not exist on the host"):
            await box.exec(["true"])


async def test_nothing_is_held_after_forty_sandboxes() -> None:
    async def one() -> None:
        async with open_sandbox("local") as box:
            await box.exec(["true"])

    await one()
    keeper = stores._KEEPER[0].process.pid
    await asyncio.sleep(0.1)
    before = len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{keeper}/fd"))
    for _ in range(20):
        await one()
    await asyncio.gather(*(one() for _ in range(20)))
    await asyncio.sleep(0.2)
    assert (len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{keeper}/fd"))) == before
    assert Path(f"/proc/{keeper}/task/{keeper}/children").read_text() == ""


async def test_forbidden_namespaces_name_the_command_that_allows_them() -> None:
    """Inside a sandbox no namespace can be made: what runs there meets a machine that forbids them."""
    repository = Path(__file__).parents[2]
    program = (
        f"import sys; sys.path.insert(0, {str(repository)!r})\n"
        "import asyncio\nfrom palestra.sandboxes import open_sandbox\n"
        "async def main():\n  async with open_sandbox('local') as box: await box.exec(['true'])\nasyncio.run(main())"
    )
    mounts = (*python_mounts(), Mount(repository / "palestra"))
    async with open_sandbox("local", mounts=mounts) as box:
        result = await box.exec([sys.executable, "-I", "-c", program])
    assert result.exit_code == 1
    assert b"user and mount namespaces cannot be made here" in result.stderr
    assert b"sysctl -w user.max_user_namespaces" in result.stderr


async def test_without_overlay_a_snapshot_copies_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: stores.Store, lowers: object) -> tuple[str, str, int]:
        raise OSError(19, "No such device")  # what a kernel without overlayfs answers

    monkeypatch.setattr(stores.Store, "overlay", refuse)
    async with open_sandbox("local") as box:
        await box.exec(
            ["sh", "-c", "mkdir -m 750 d; echo 12 > d/f; ln -s d/f l; chmod 640 d/f; touch -d 2001-01-01 d/f"]
        )
        snapshot = await box.snapshot()
        assert (snapshot.how, snapshot.copied_bytes) == ("copy", 3)
        await box.write("d/f", b"changed")
        async with await box.fork(snapshot) as child:
            said = await child.exec(
                ["sh", "-c", "cat l; stat -c '%a %y' d/f | cut -c1-14; stat -c %a d; echo more >> d/f"]
            )
            assert said.stdout == b"12\n640 2001-01-01\n750\n"
            async with await box.fork(snapshot) as sibling:
                assert await sibling.read("d/f") == b"12\n"


async def test_an_absent_interpreter_is_refused() -> None:
    with pytest.raises(SandboxError, match="cannot be found"):
        python_mounts("/no/python")
    with pytest.raises(SandboxError, match="no working Python interpreter"):
        python_mounts("/bin/true")


async def test_a_link_stands_where_it_was_asked_for_and_shows_nothing_of_the_host() -> None:
    links = (Mount(Path(bwrap.INSIDE), Path("/app"), link=True), Mount(Path("/etc"), Path("/data/etc"), link=True))
    async with open_sandbox("local", mounts=links) as box:
        wrote = await box.exec(["sh", "-c", "echo 1 > /app/f; ls /data/etc/passwd"])
        assert wrote.exit_code != 0 and await box.read("f") == b"1\n"


async def test_a_mount_may_be_named_relative_to_our_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here/f").write_text("x")
    monkeypatch.chdir(tmp_path)
    async with open_sandbox("local", mounts=(Mount(Path("here"), Path("/data")),)) as box:
        assert (await box.exec(["cat", "/data/f"])).stdout == b"x"
