"""What is copied out of a workspace, and what is not."""

from __future__ import annotations

import pytest

from palestra.errors import GraderError
from palestra.sandboxes import open_sandbox
from palestra.verify.artifacts import Bounds, collect

MESS = """
mkdir -p src/deep __pycache__ .git/hooks
printf a > src/a.py; printf b > src/deep/b.py; printf x > __pycache__/a.pyc; printf x > .git/hooks/pre-commit
ln -s /etc/alternatives src/link; ln -s a.py src/inner; ln src/a.py hard; mkfifo fifo
printf s > setuid; chmod 4755 setuid; truncate -s 200M sparse; printf n > "$(printf 'new\\nline')"; printf e > é
printf z > "$(printf 'bad\\377')"
"""


async def test_only_plain_files_are_copied_and_the_rest_is_named() -> None:
    async with open_sandbox("local") as box:
        made = await box.exec(["sh", "-c", MESS])
        assert made.exit_code == 0, made.stderr
        found = await collect(box)
    assert found.files == {"src/deep/b.py": b"b", "new\nline": b"n", "é": b"e"}
    assert found.left_out == {
        "src/link": "is a symbolic link",
        "src/inner": "is a symbolic link",
        "src/a.py": "has more than one name (a hard link)",
        "hard": "has more than one name (a hard link)",
        "fifo": "is a FIFO",
        "setuid": "is set-uid or set-gid",
        "sparse": f"has {200 << 20} bytes, at most {4 << 20} are copied",
        "bad\udcff": "has a name that is not UTF-8",
    }


async def test_names_choose_what_is_copied_and_absent_ones_give_nothing() -> None:
    async with open_sandbox("local") as box:
        await box.write("src/a.py", b"a")
        await box.write("src/sub/b.py", b"b")
        await box.write("other", b"o")
        assert set((await collect(box, ["src"])).files) == {"src/a.py", "src/sub/b.py"}
        assert set((await collect(box, ["src/a.py", "absent"])).files) == {"src/a.py"}


async def test_a_folder_link_in_place_of_an_artifact_is_not_followed() -> None:
    async with open_sandbox("local") as box:
        await box.exec(["sh", "-c", "mkdir real; echo x > real/f; ln -s real src"])
        found = await collect(box, ["src"])
        assert not found.files and found.left_out == {"src": "is a symbolic link"}


async def test_bounds_are_kept() -> None:
    async with open_sandbox("local") as box:
        for name in "abc":
            await box.write(name, b"12345")
        few = await collect(box, bounds=Bounds(files=2))
        small = await collect(box, bounds=Bounds(total_bytes=11))
    assert list(few.files) == list(small.files) == ["a", "b"]
    assert list(few.left_out) == ["c"] and "beyond 2 files" in few.left_out["c"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "", "-delete", "a\0b"])
async def test_a_name_outside_the_workspace_is_refused(name: str) -> None:
    async with open_sandbox("local") as box:
        with pytest.raises(GraderError, match="inside the workspace"):
            await collect(box, [name])
