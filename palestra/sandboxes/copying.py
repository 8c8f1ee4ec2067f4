"""Copying a tree by descriptors: modes, times and links kept, blocks shared where the file system can."""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from palestra.errors import SandboxError
from palestra.sandboxes.trees import FOLDER, MOST_DEEP

_FICLONE = 0x40049409
_NO_CLONE = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY)


def copy_tree(source: int, target: int, depth: int = 0) -> tuple[int, int]:
    """Copy what is in folder ``source`` into folder ``target``: (bytes copied, bytes shared). Sockets, FIFOs and
    devices are left out: they mean nothing in another sandbox.

    Raises SandboxError where folders are nested deeper than ``MOST_DEEP``."""
    if depth > MOST_DEEP:
        raise SandboxError(
            f"the workspace cannot be copied: its folders are nested deeper than {MOST_DEEP}; flatten them"
        )
    copied = shared = 0
    for name in os.listdir(source):
        facts = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISDIR(facts.st_mode):
            more = _copy_folder(source, target, name, depth)
            copied, shared = copied + more[0], shared + more[1]
        elif stat.S_ISLNK(facts.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
        elif stat.S_ISREG(facts.st_mode):
            is_shared = _copy_file(source, target, name, stat.S_IMODE(facts.st_mode))
            copied, shared = (copied, shared + facts.st_size) if is_shared else (copied + facts.st_size, shared)
        if stat.S_ISDIR(facts.st_mode) or stat.S_ISREG(facts.st_mode):
            os.utime(name, ns=(facts.st_atime_ns, facts.st_mtime_ns), dir_fd=target)
    return copied, shared


def _copy_folder(source: int, target: int, name: str, depth: int) -> tuple[int, int]:
    os.mkdir(name, 0o700, dir_fd=target)
    inside = os.open(name, FOLDER, dir_fd=source)
    try:
        made = os.open(name, FOLDER, dir_fd=target)
        try:
            result = copy_tree(inside, made, depth + 1)
            os.fchmod(made, stat.S_IMODE(os.fstat(inside).st_mode))
        finally:
            os.close(made)
    finally:
        os.close(inside)
    return result


def _copy_file(source: int, target: int, name: str, mode: int) -> bool:
    """True where the blocks are shared."""
    inside = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
    try:
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=target)
        try:
            os.fchmod(made, mode)
            try:
                fcntl.ioctl(made, _FICLONE, inside)
                return True
            except OSError as error:
                if error.errno not in _NO_CLONE:
                    raise
            while os.sendfile(made, inside, None, 1 << 30):
                continue
            return False
        finally:
            os.close(made)
    finally:
        os.close(inside)
