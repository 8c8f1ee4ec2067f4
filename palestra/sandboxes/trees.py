"""Trees that a hostile program made: how large they are, and their removal. Neither follows a link, and neither ends at
the depth of our own stack or the number of our own descriptors."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import stat

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_DEEP = 200
"""Folders within folders that are measured or copied: a descriptor of each is held meanwhile."""


def size_mib(folder: int) -> float:
    """Allocated MiB of a tree, by descriptor, each inode once; infinite where folders are nested deeper than
    ``MOST_DEEP``: what cannot be measured must not pass for small."""
    return _blocks(folder, 0, set()) / 2048


def _blocks(folder: int, depth: int, seen: set[tuple[int, int]]) -> float:
    if depth > MOST_DEEP:
        return math.inf
    total = 0.0
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # gone meanwhile
                facts = entry.stat(follow_symlinks=False)
                if facts.st_nlink > 1 and not stat.S_ISDIR(facts.st_mode):
                    if (facts.st_dev, facts.st_ino) in seen:
                        continue
                    seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_blocks
                if stat.S_ISDIR(facts.st_mode):
                    inside = os.open(entry.name, FOLDER, dir_fd=folder)
                    try:
                        total += _blocks(inside, depth + 1, seen)
                    finally:
                        os.close(inside)
    return total


def remove_tree(folder: int, name: str) -> None:
    """Remove ``name`` in ``folder`` whatever its programs did to its modes, however deep it is; links are removed, not
    followed. Deep folders are moved up one level after another, so that two descriptors are enough."""
    top = reopened(folder, name)
    if top < 0:
        return
    try:
        waiting = _emptied(top, top)
        while waiting:
            entry = waiting.pop()
            inside = reopened(top, entry)
            try:
                waiting += _emptied(inside, top)
            finally:
                os.close(inside)
            os.rmdir(entry, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=folder)


def _emptied(folder: int, top: int) -> list[str]:
    """Unlink the files of ``folder`` and move its folders into ``top`` under names of ours: those names."""
    moved = []
    for entry in os.listdir(folder):
        if stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
            os.close(reopened(folder, entry))  # a folder that its owner may not write to cannot be moved by him either
            moved.append(f".palestra-gone-{secrets.token_hex(8)}")
            os.rename(entry, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
        else:
            os.unlink(entry, dir_fd=folder)
    return moved


def reopened(folder: int, name: str) -> int:
    """A descriptor of a folder that its owner can read and write again; −1 for what was no folder, and is unlinked."""
    try:
        inside = os.open(name, FOLDER, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        inside = os.open(name, FOLDER, dir_fd=folder)
    except NotADirectoryError:
        os.unlink(name, dir_fd=folder)
        return -1
    os.fchmod(inside, 0o700)
    return inside
