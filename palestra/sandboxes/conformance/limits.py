"""Limits: each is met, named, and leaves the sandbox usable."""

from __future__ import annotations

from palestra.sandboxes.base import Limits
from palestra.sandboxes.conformance.runner import Trial, case


@case()
async def wall_time_ends(t: Trial) -> None:
    """A time-out kills, is named, and comes on time."""
    result = await t.sh("sleep 30", limits=Limits(wall_s=0.3))
    t.equal((result.exit_code, result.timed_out), (-9, True))
    t.true("wall_s" in result.limits_hit and 0.25 < result.usage.wall_s < 2, f"got {result}")
    t.equal((await t.sh("echo ok")).stdout, b"ok\n")


@case()
async def output_before_a_time_out_is_kept(t: Trial) -> None:
    """What was said before the time-out comes back."""
    t.equal((await t.sh("echo early; sleep 30", limits=Limits(wall_s=0.3))).stdout, b"early\n")


@case()
async def ignoring_sigterm_does_not_help(t: Trial) -> None:
    """A command that ignores every signal it can is killed all the same."""
    result = await t.sh("trap '' TERM INT HUP QUIT; while :; do sleep 1; done", limits=Limits(wall_s=0.3))
    t.true(result.timed_out, "it was not ended")


@case()
async def a_stopped_command_is_killed(t: Trial) -> None:
    """A command that stops itself is killed at the time-out."""
    t.true((await t.sh("kill -STOP $$", limits=Limits(wall_s=0.3))).timed_out, "it was not ended")


@case()
async def output_is_bounded(t: Trial) -> None:
    """Output beyond the limit is dropped, marked and named; the command runs on."""
    result = await t.sh("head -c 5000000 /dev/zero; echo end >&2", limits=Limits(output_bytes=1000))
    t.equal((len(result.stdout), result.stderr, result.truncated), (1000, b"end\n", True))
    t.true("output_bytes" in result.limits_hit, f"got {result.limits_hit}")


@case()
async def output_of_the_very_limit_is_whole(t: Trial) -> None:
    """Exactly as much as allowed is not truncated."""
    result = await t.sh("head -c 1000 /dev/zero", limits=Limits(output_bytes=1000))
    t.equal((len(result.stdout), result.truncated), (1000, False))


@case("rlimits")
async def cpu_time_ends(t: Trial) -> None:
    """A command that burns its CPU seconds is killed and the limit is named."""
    result = await t.sh("while :; do :; done", limits=Limits(cpu_s=1, wall_s=8))
    t.true("cpu_s" in result.limits_hit and not result.timed_out, f"got {result}")


@case("rlimits")
async def file_size_is_bounded(t: Trial) -> None:
    """No file grows beyond the limit."""
    result = await t.sh("head -c 3000000 /dev/zero > big", limits=Limits(file_mib=1))
    t.true(result.exit_code != 0, "the write did not fail")
    t.equal((await t.sh("wc -c < big")).stdout.strip(), b"1048576")


@case("rlimits")
async def open_files_are_bounded(t: Trial) -> None:
    """The limit on open files is what was asked."""
    t.equal((await t.sh("ulimit -n", limits=Limits(open_files=40))).stdout, b"40\n")


@case("rlimits")
async def memory_is_bounded(t: Trial) -> None:
    """A program cannot take more memory than allowed."""
    result = await t.sh("head -c 300000000 /dev/zero | tail -c 250000000 > /dev/null", limits=Limits(memory_mib=64))
    t.true(result.exit_code != 0 or b"memory" in result.stderr, f"got {result}")


@case("rlimits")
async def limits_cannot_be_raised(t: Trial) -> None:
    """A command cannot raise its own hard limits."""
    t.true((await t.sh("ulimit -n 4000", limits=Limits(open_files=64))).exit_code != 0, "the limit was raised")


@case("cgroups")
async def memory_of_all_is_bounded(t: Trial) -> None:
    """Many small processes together cannot take more than allowed either."""
    hog = "x=$(head -c 15000000 /dev/zero | tr '\\0' a); sleep 2"
    result = await t.sh(f"for i in 1 2 3 4 5 6 7 8; do ({hog}) & done; wait", limits=Limits(memory_mib=96, wall_s=8))
    t.true("memory_mib" in result.limits_hit, f"the limit was not met: {result}")
    t.equal((await t.sh("echo ok")).stdout, b"ok\n")


@case("cgroups", "kills-all")
async def a_fork_bomb_is_bounded(t: Trial) -> None:
    """A fork bomb meets its limit (the kernel counted it, or told the bomb), and ends with the command."""
    result = await t.sh("b() { b | b & b; }; b; sleep 5", limits=Limits(processes=40, wall_s=1))
    t.true("processes" in result.limits_hit or b"fork" in result.stderr, f"got {result}")
    t.equal((await t.sh("echo ok")).stdout, b"ok\n")


@case("disk")
async def the_disk_is_bounded(t: Trial) -> None:
    """Many files within the file limit still meet the disk limit, of which the sandbox recovers."""
    script = (
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 120000000 /dev/zero > f$i || break; done; rm -f f*; echo ok"
    )
    result = await t.sh(script, limits=Limits(wall_s=20))
    t.true(b"No space" in result.stderr, f"no end was met: {result}")
    t.equal((await t.sh("echo ok > f; cat f")).stdout, b"ok\n")


@case("disk")
async def inodes_are_bounded(t: Trial) -> None:
    """Empty files are bounded as well."""
    result = await t.sh("mkdir m; cd m; seq 100000 | xargs touch; cd ..; rm -rf m", limits=Limits(wall_s=30))
    t.true(b"No space" in result.stderr, f"no end was met: {result.stderr[-200:]!r}")


@case()
async def limits_of_zero_are_refused(t: Trial) -> None:
    """A limit of zero, below zero or NaN is an error, not a surprise."""
    from palestra.errors import SandboxError

    for bad in ({"wall_s": 0}, {"memory_mib": -1}, {"wall_s": float("nan")}, {"output_bytes": 0}):
        try:
            Limits(**bad)
        except SandboxError:
            continue
        t.true(False, f"{bad} was accepted")
