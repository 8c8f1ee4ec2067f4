"""Commands: arguments, streams, codes, environment, folders."""

from __future__ import annotations

import asyncio

from palestra.sandboxes.base import Limits
from palestra.sandboxes.conformance.runner import Trial, case


@case()
async def exit_code_is_passed_through(t: Trial) -> None:
    """A command's exit code comes back."""
    for code in (0, 1, 7, 127):
        t.equal((await t.sh(f"exit {code}")).exit_code, code)


@case()
async def signal_is_negative(t: Trial) -> None:
    """A command killed by signal n gives -n."""
    t.equal((await t.sh("kill -TERM $$")).exit_code, -15)


@case()
async def streams_are_separate(t: Trial) -> None:
    """Stdout and stderr come back apart, and nothing else with them."""
    result = await t.sh("printf out; printf err >&2; kill -9 $$")
    t.equal((result.stdout, result.stderr), (b"out", b"err"))


@case()
async def output_is_bytes(t: Trial) -> None:
    """Output that is no text comes back byte for byte."""
    t.equal((await t.sh(r"printf '\000\377\n\r'")).stdout, b"\x00\xff\n\r")


@case()
async def arguments_are_not_parsed(t: Trial) -> None:
    """Arguments reach the program as they are: spaces, quotes, dollars, globs, newlines, empty ones."""
    given = ["a b", "'", '"', "$HOME", "*", "x\ny", "", "\\n", "-e", "`id`", "é"]
    result = await t.box.exec(["printf", "<%s>", *given])
    t.equal(result.stdout.decode(), "".join(f"<{text}>" for text in given))


@case()
async def a_name_means_the_program(t: Trial) -> None:
    """A command that a shell has built in is still the program of that name."""
    t.equal((await t.box.exec(["echo", "-n", "x"])).stdout, b"x")
    t.equal((await t.box.exec(["exit", "3"])).exit_code, 127)


@case()
async def an_absent_program_is_127(t: Trial) -> None:
    """A program that is not there gives 127, not an exception."""
    t.equal((await t.box.exec(["no-such-program"])).exit_code, 127)


@case()
async def a_file_that_is_no_program_is_126(t: Trial) -> None:
    """A file without execute permission gives 126."""
    await t.box.write("plain", b"echo x\n")
    t.equal((await t.box.exec(["./plain"])).exit_code, 126)


@case()
async def stdin_is_given_and_ends(t: Trial) -> None:
    """Stdin is what was given, and then at its end."""
    t.equal((await t.box.exec(["cat"], stdin=b"a\nb")).stdout, b"a\nb")
    t.equal((await t.box.exec(["cat"])).stdout, b"")


@case()
async def large_stdin_is_whole(t: Trial) -> None:
    """Three MiB of stdin arrive whole while output is read."""
    data = bytes(range(256)) * 12288
    result = await t.box.exec(["cat"], stdin=data, limits=Limits(output_bytes=4 << 20))
    t.true(result.stdout == data, f"got {len(result.stdout)} bytes back of {len(data)}")


@case()
async def unread_stdin_is_no_fault(t: Trial) -> None:
    """A command that never reads its large stdin ends as it would."""
    t.equal((await t.box.exec(["true"], stdin=b"x" * (1 << 20))).exit_code, 0)


@case()
async def environment_is_given(t: Trial) -> None:
    """Variables arrive as given, newlines and quotes included."""
    result = await t.box.exec(["sh", "-c", 'printf %s "$V"'], env={"V": "a'b\n$c"})
    t.equal(result.stdout, b"a'b\n$c")


@case()
async def environment_is_clear(t: Trial) -> None:
    """Nothing of the caller's environment is seen."""
    names = {line.split("=")[0] for line in (await t.box.exec(["env"])).stdout.decode().splitlines()}
    own = {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "_", "SHLVL", "HOSTNAME", "TERM", "container"}
    t.true(names <= own, f"got {sorted(names - own)}")


@case()
async def the_folder_is_the_workspace(t: Trial) -> None:
    """A command starts in the workspace; ``cwd`` is relative to it."""
    await t.box.write("a b/f", b"")
    t.equal((await t.box.exec(["ls"])).stdout, b"a b\n")
    t.equal((await t.box.exec(["ls"], cwd="a b")).stdout, b"f\n")


@case()
async def a_folder_outside_is_refused(t: Trial) -> None:
    """``cwd`` may not leave the workspace, nor be a file."""
    await t.box.write("f", b"")
    await t.refused(t.box.exec(["true"], cwd=".."), "cwd ..")
    await t.refused(t.box.exec(["true"], cwd="f"), "cwd that is a file")
    await t.refused(t.box.exec(["true"], cwd="absent"), "cwd that is absent")


@case()
async def bad_commands_are_refused(t: Trial) -> None:
    """An empty command, a NUL byte, a name that is no variable's: refused before anything runs."""
    await t.refused(t.box.exec([]), "no command")
    await t.refused(t.box.exec(["echo", "a\0b"]), "a NUL byte")
    await t.refused(t.box.exec(["true"], env={"a b": "c"}), "a variable named 'a b'")


@case()
async def commands_run_at_once(t: Trial) -> None:
    """Commands of one sandbox may overlap, and do not mix."""
    results = await asyncio.gather(*(t.sh(f"sleep 0.05; echo {number}") for number in range(4)))
    t.equal([result.stdout for result in results], [b"0\n", b"1\n", b"2\n", b"3\n"])


@case("cancels")
async def cancelling_ends_the_command(t: Trial) -> None:
    """A cancelled exec has ended what it ran, and the sandbox is usable."""
    task = asyncio.ensure_future(t.sh("sleep 0.4; touch late"))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0.5)
    t.equal(await t.box.list(), ())


@case("streams")
async def output_streams_as_it_comes(t: Trial) -> None:
    """``on_output`` hears the first words before the command has ended."""
    heard: list[bytes] = []
    loop = asyncio.get_running_loop()
    times: list[float] = []

    def hear(name: str, data: bytes) -> None:
        heard.append(data)
        times.append(loop.time())

    await t.sh("printf a; sleep 0.3; printf b", on_output=hear)
    t.equal(b"".join(heard), b"ab")
    t.true(times[-1] - times[0] > 0.2, "the first output came with the last")


@case("usage")
async def usage_is_measured(t: Trial) -> None:
    """Wall and CPU seconds are about what was used."""
    result = await t.sh("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.1")
    t.true(result.usage.wall_s > 0.1, f"wall_s {result.usage.wall_s}")
    t.true(0.02 < result.usage.cpu_s < result.usage.wall_s + 1, f"cpu_s {result.usage.cpu_s}")


@case()
async def protections_are_named(t: Trial) -> None:
    """A result says what stood between the command and the host."""
    t.true((await t.sh("true")).protections, "no protection is named, not even that there is none")


@case()
async def a_closed_sandbox_says_so(t: Trial) -> None:
    """After close everything is refused, and closing again does nothing."""
    await t.box.close()
    await t.box.close()
    await t.refused(t.box.exec(["true"]), "exec after close")
    await t.refused(t.box.read("x"), "read after close")
