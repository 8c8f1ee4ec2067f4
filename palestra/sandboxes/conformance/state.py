"""State: what persists in a sandbox, snapshots, forks and sessions."""

from __future__ import annotations

import asyncio

from palestra.sandboxes.base import Limits
from palestra.sandboxes.conformance.runner import Trial, case


@case()
async def files_persist_between_commands(t: Trial) -> None:
    """What one command writes, the next one finds."""
    await t.sh("echo 1 > f")
    t.equal((await t.sh("cat f")).stdout, b"1\n")


@case()
async def variables_do_not_persist(t: Trial) -> None:
    """A command's environment and folder are its own."""
    await t.sh("export A=1; cd /")
    t.equal((await t.sh("echo $A; ls")).stdout, b"\n")


@case("snapshots")
async def a_fork_starts_equal(t: Trial) -> None:
    """A fork has the files, modes and links of its parent."""
    await t.sh("mkdir d; echo 1 > d/f; chmod 640 d/f; ln -s d/f l; printf '#!/bin/sh\\necho run' > x; chmod 755 x")
    async with await t.box.fork() as child:
        result = await child.exec(["sh", "-c", "cat l; stat -c %a d/f; ./x"])
    t.equal(result.stdout, b"1\n640\nrun\n")


@case("snapshots")
async def a_fork_does_not_touch_its_parent(t: Trial) -> None:
    """Writing in place, appending, deleting, replacing a folder in a fork: the parent is as it was."""
    await t.sh("mkdir d; for i in a b c; do echo old > d/$i; done; echo old > f; ln f g")
    before = (await t.sh("find . -type f -exec md5sum {} + | sort; ls -lR --time-style=full-iso")).stdout
    async with await t.box.fork() as child:
        await child.exec(
            ["sh", "-c", "echo new > f; echo more >> d/a; rm d/b; rm -r d; mkdir d; touch d/z; chmod 700 g"]
        )
        t.equal(await child.list("d"), ("z",))
        await child.write("f", b"host")
    t.true(
        (await t.sh("find . -type f -exec md5sum {} + | sort; ls -lR --time-style=full-iso")).stdout == before,
        "changed",
    )


@case("snapshots")
async def a_parent_does_not_touch_its_forks(t: Trial) -> None:
    """What the parent does after the snapshot is not seen in a fork of it."""
    await t.sh("echo 1 > f")
    snapshot = await t.box.snapshot()
    await t.sh("echo 2 > f; echo 3 > g")
    async with await t.box.fork(snapshot) as child:
        t.equal((await child.read("f"), await child.list()), (b"1\n", ("f",)))


@case("snapshots")
async def forks_do_not_meet(t: Trial) -> None:
    """Siblings do not see each other's files."""
    snapshot = await t.box.snapshot()
    async with await t.box.fork(snapshot) as one, await t.box.fork(snapshot) as two:
        await one.write("f", b"1")
        t.equal(await two.list(), ())


@case("snapshots")
async def a_chain_of_forks_is_deep(t: Trial) -> None:
    """A hundred forks, each of the one before, still read right."""
    box = t.box
    chain = []
    for depth in range(100):
        await box.write(f"f{depth}", str(depth).encode())
        box = await box.fork()
        chain.append(box)
    t.equal(len(await box.list()), 100)
    t.equal((await box.exec(["cat", "f0", "f50", "f99"])).stdout, b"05099")
    for link in reversed(chain):
        await link.close()


@case("snapshots")
async def a_snapshot_outlives_its_sandbox(t: Trial) -> None:
    """A snapshot can be forked after the sandbox that took it is closed."""
    await t.box.write("f", b"1")
    child = await t.box.fork()
    snapshot = await child.snapshot()
    await child.close()
    async with await t.box.fork(snapshot) as grandchild:
        t.equal(await grandchild.read("f"), b"1")


@case("snapshots", "sessions")
async def a_busy_sandbox_is_not_frozen(t: Trial) -> None:
    """A snapshot while something runs is refused: it would be torn."""
    async with await t.box.session():
        await t.refused(t.box.snapshot(), "a snapshot beside a session")
    await t.box.snapshot()


@case("sessions")
async def a_session_keeps_folder_and_variables(t: Trial) -> None:
    """cd, export, functions and plain variables survive between calls."""
    async with await t.box.session() as session:
        await session.run("mkdir d; cd d; export A=1; B=2; f() { echo fun; }")
        t.equal((await session.run("pwd; echo $A $B; f; sh -c 'echo $A'")).stdout, b"/workspace/d\n1 2\nfun\n1\n")


@case("sessions")
async def a_session_keeps_jobs(t: Trial) -> None:
    """A background job goes on between calls, and ends with the session."""
    async with await t.box.session() as session:
        await session.run("(sleep 0.2; echo done > mark; sleep 50) & :")
        t.equal((await session.run("sleep 0.4; cat mark; jobs | wc -l")).stdout, b"done\n1\n")


@case("sessions")
async def a_session_gives_codes_and_streams(t: Trial) -> None:
    """Each call has its own exit code, stdout and stderr; commands may span lines."""
    async with await t.box.session() as session:
        result = await session.run("echo out\necho err >&2\nfalse")
        t.equal((result.exit_code, result.stdout, result.stderr), (1, b"out\n", b"err\n"))
        t.equal((await session.run("true")).exit_code, 0)
        t.equal((await session.run("if")).exit_code != 0, True)
        t.equal((await session.run("echo still")).stdout, b"still\n")


@case("sessions")
async def a_session_survives_a_time_out(t: Trial) -> None:
    """At the time-out the call's own processes die, and the session lives."""
    async with await t.box.session() as session:
        await session.run("A=1; sleep 50 & :")
        t.true((await session.run("sleep 60 | cat", timeout_s=0.3)).timed_out, "no time-out")
        t.equal((await session.run("echo $A; jobs -r | wc -l")).stdout, b"1\n1\n")


@case("sessions")
async def a_session_ends_with_exit(t: Trial) -> None:
    """``exit`` gives its code, and the session says that it has ended."""
    async with await t.box.session() as session:
        t.equal((await session.run("exit 5")).exit_code, 5)
        await t.refused(session.run("true"), "a call after exit")


@case("sessions")
async def a_session_bounds_output(t: Trial) -> None:
    """The output limit is for each call."""
    async with await t.box.session(limits=Limits(output_bytes=1000)) as session:
        t.equal(len((await session.run("head -c 100000 /dev/zero")).stdout), 1000)
        t.equal((await session.run("echo x")).stdout, b"x\n")


@case("sessions", "streams")
async def a_session_streams(t: Trial) -> None:
    """The first words of a call are heard before its last are written."""
    heard: list[tuple[str, bytes]] = []
    times: list[float] = []

    def hear(name: str, data: bytes) -> None:
        heard.append((name, data))
        times.append(asyncio.get_running_loop().time())

    async with await t.box.session() as session:
        await session.run("printf a; sleep 0.3; printf b >&2", on_output=hear)
        t.equal(heard, [("stdout", b"a"), ("stderr", b"b")])
        t.true(times[-1] - times[0] > 0.2, "the first output came with the last")
        await session.run("echo more")
        t.equal(len(heard), 2, "outputs heard after the call that asked for them")
