"""Files: what read, write and list do, and what they refuse."""

from __future__ import annotations

from palestra.sandboxes.conformance.runner import Trial, case


@case()
async def written_is_read(t: Trial) -> None:
    """What is written is read back, by us and by a program."""
    data = bytes(range(256)) * 100
    await t.box.write("a/b/c", data)
    t.true(await t.box.read("a/b/c") == data, "read gave other bytes")
    t.equal((await t.sh("wc -c < a/b/c")).stdout.strip(), b"25600")


@case()
async def a_programs_file_is_read(t: Trial) -> None:
    """What a program writes is read."""
    await t.sh("printf x > f; mkdir d; printf y > d/g")
    t.equal((await t.box.read("f"), await t.box.read("d/g")), (b"x", b"y"))


@case()
async def writing_replaces(t: Trial) -> None:
    """A second write replaces the whole file."""
    await t.box.write("f", b"long content")
    await t.box.write("f", b"x")
    t.equal(await t.box.read("f"), b"x")


@case()
async def list_is_sorted(t: Trial) -> None:
    """List gives the names of a folder, sorted, hidden ones included."""
    await t.sh("mkdir -p d; touch d/b d/a d/.c")
    t.equal(await t.box.list("d"), (".c", "a", "b"))


@case()
async def absent_is_refused(t: Trial) -> None:
    """Reading or listing what is not there is a SandboxError."""
    await t.refused(t.box.read("absent"), "read of an absent file")
    await t.refused(t.box.list("absent"), "list of an absent folder")


@case()
async def a_folder_is_not_read(t: Trial) -> None:
    """A folder is no file, a file no folder."""
    await t.sh("mkdir d; touch f")
    await t.refused(t.box.read("d"), "read of a folder")
    await t.refused(t.box.list("f"), "list of a file")
    await t.refused(t.box.write("d", b""), "write over a folder")


@case()
async def dots_do_not_leave(t: Trial) -> None:
    """No ``..`` leads out of the workspace, wherever it stands."""
    await t.box.write("d/f", b"")
    for path in ("..", "../x", "d/../../x", "./../x", "d/./.././../x"):
        await t.refused(t.box.read(path), f"read {path}")
        await t.refused(t.box.write(path, b""), f"write {path}")


@case()
async def dots_inside_are_fine(t: Trial) -> None:
    """A ``..`` that stays inside is followed."""
    await t.box.write("d/e/f", b"1")
    t.equal(await t.box.read("d/e/../e/./f"), b"1")


@case()
async def absolute_paths_do_not_leave(t: Trial) -> None:
    """An absolute path outside the workspace is refused."""
    for path in ("/etc/passwd", "/", "/workspace-not/x", "//etc/passwd"):
        await t.refused(t.box.read(path), f"read {path}")
        await t.refused(t.box.write(path, b""), f"write {path}")


@case()
async def links_out_are_refused(t: Trial) -> None:
    """A symbolic link out of the workspace is not followed, neither by its target nor on the way."""
    await t.sh("ln -s /etc/passwd p; ln -s /etc e; ln -s ../.. up; ln -s /proc/self/root r")
    for path in ("p", "e/passwd", "up/etc/passwd", "r/etc/passwd"):
        await t.refused(t.box.read(path), f"read {path}")
    for path in ("e/x", "up/x", "r/tmp/x"):
        await t.refused(t.box.write(path, b""), f"write {path}")


@case()
async def links_inside_are_followed(t: Trial) -> None:
    """A symbolic link that stays inside is followed when reading."""
    await t.sh("mkdir d; printf x > d/f; ln -s d/f l; ln -s d k; cd d; ln -s ../d/f m")
    t.equal([await t.box.read(path) for path in ("l", "k/f", "d/m")], [b"x"] * 3)


@case()
async def link_loops_end(t: Trial) -> None:
    """A loop of links is refused, not followed forever."""
    await t.sh("ln -s a b; ln -s b a; ln -s . s")
    await t.refused(t.box.read("a"), "read of a loop")
    await t.refused(t.box.read("s/" * 50 + "x"), "read through fifty links")


@case()
async def writing_replaces_a_link(t: Trial) -> None:
    """Writing where a link stands replaces the link; its target is untouched."""
    await t.sh("printf keep > f; ln -s f l")
    await t.box.write("l", b"new")
    t.equal((await t.box.read("f"), await t.box.read("l")), (b"keep", b"new"))


@case()
async def writing_does_not_reach_a_hard_link(t: Trial) -> None:
    """Writing where a hard link stands leaves the other name's content."""
    await t.sh("printf keep > f; ln f h")
    await t.box.write("h", b"new")
    t.equal(await t.box.read("f"), b"keep")


@case()
async def special_files_are_refused(t: Trial) -> None:
    """A FIFO or a socket is refused at once, not waited for."""
    await t.sh("mkfifo fifo")
    await t.refused(t.box.read("fifo"), "read of a FIFO")
    await t.box.write("fifo", b"now a file")
    t.equal(await t.box.read("fifo"), b"now a file")


@case()
async def huge_files_are_refused(t: Trial) -> None:
    """A sparse file of 200 MiB is refused by its size before it is read."""
    await t.sh("truncate -s 200M sparse")
    await t.refused(t.box.read("sparse"), "read of 200 MiB")
    await t.box.write("small", b"12345")
    await t.refused(t.box.read("small", max_bytes=4), "read of more than max_bytes")
    t.equal(await t.box.read("small", max_bytes=5), b"12345")


@case()
async def odd_names_work(t: Trial) -> None:
    """Names with spaces, newlines, quotes and leading dashes are names."""
    for name in ("a b", "a\nb", "-rf", "'", '"', "$x", "*", "é"):
        await t.box.write(name, name.encode())
        t.equal(await t.box.read(name), name.encode())
    t.equal((await t.box.exec(["cat", "./a\nb"])).stdout, b"a\nb")


@case()
async def undecodable_names_work(t: Trial) -> None:
    """A name that is no UTF-8 is listed and read by its surrogate-escaped form."""
    await t.sh(r"printf x > $(printf '\377\376')")
    (name,) = await t.box.list()
    t.equal(name.encode("utf-8", "surrogateescape"), b"\xff\xfe")
    t.equal(await t.box.read(name), b"x")


@case()
async def no_path_is_refused(t: Trial) -> None:
    """An empty path or one with a NUL byte is refused."""
    await t.refused(t.box.read(""), "an empty path")
    await t.refused(t.box.read("a\0b"), "a NUL byte")
    await t.refused(t.box.write("", b""), "an empty path")


@case()
async def deep_folders_work(t: Trial) -> None:
    """Folders nested 200 deep are written, read and removed."""
    path = "d/" * 200 + "f"
    await t.box.write(path, b"deep")
    t.equal(await t.box.read(path), b"deep")
