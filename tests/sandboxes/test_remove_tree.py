"""A folder that a program filled is removed whole, however it was made, and nothing outside it."""

import os

from palestra.sandboxes.trees import remove_tree


def nest(folder, depth):
    """``depth`` folders, each inside the last, a file beside each: a path far longer than any call takes."""
    held = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=held))
        os.mkdir("d", dir_fd=held)
        inner = os.open("d", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)


def remove(folder):
    held = os.open(folder.parent, os.O_RDONLY)
    try:
        remove_tree(held, folder.name)
    finally:
        os.close(held)


def test_folders_nested_deeper_than_python_recurses(tmp_path):
    (tmp_path / "own").mkdir()
    nest(tmp_path / "own", 3000)
    before = len(os.listdir("/proc/self/fd"))
    remove(tmp_path / "own")
    assert os.listdir(tmp_path) == [] and len(os.listdir("/proc/self/fd")) == before


def test_modes_links_pipes_and_neighbours(tmp_path):
    (tmp_path / "kept").write_text("kept")
    own = tmp_path / "own"
    (own / "a/b/c").mkdir(parents=True)
    (own / "a/link").symlink_to(tmp_path / "kept")
    (own / "a/b/up").symlink_to(tmp_path)
    (own / "link").symlink_to(tmp_path)
    os.mkfifo(own / "a/pipe")
    for folder in ("a/b/c", "a/b", "a"):
        (own / folder).chmod(0)
    remove(own)
    assert os.listdir(tmp_path) == ["kept"] and (tmp_path / "kept").read_text() == "kept"


def test_a_file_alone(tmp_path):
    (tmp_path / "own").write_text("x")
    remove(tmp_path / "own")
    assert os.listdir(tmp_path) == []
