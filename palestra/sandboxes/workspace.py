"""Files of a workspace, reached from outside without trusting anything that stands in it.

A path is walked folder by folder with descriptors (``O_NOFOLLOW`` at every step), symbolic links are resolved by us and
may not leave the workspace, and ``..`` pops our own stack: no rename or link swapped in meanwhile can lead outside.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from palestra.errors import SandboxError
from palestra.sandboxes.trees import FOLDER

MAX_LINKS = 40


class Workspace:
    """One folder, held by the descriptor ``root`` (the caller's to close), seen by programs at ``inside``."""

    def __init__(self, root: int, inside: str) -> None:
        self.root = root
        self.inside = inside

    def read(self, path: str, max_bytes: int) -> bytes:
        with self._parent(path, make=False, follow_last=True) as (parent, name):
            # O_NONBLOCK: opening a FIFO must not wait for a writer that never comes.
            file = _open(path, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, parent)
            try:
                facts = os.fstat(file)
                if not stat.S_ISREG(facts.st_mode):
                    raise SandboxError(f"{path!r} is not a regular file; only regular files can be read")
                with os.fdopen(file, "rb", closefd=False) as stream:
                    data = stream.read(max_bytes + 1) if facts.st_size <= max_bytes else None
            finally:
                os.close(file)
        if data is None or len(data) > max_bytes:
            raise SandboxError(
                f"{path!r} has {facts.st_size} bytes, more than the {max_bytes} allowed; raise max_bytes"
            )
        return data

    def write(self, path: str, data: bytes) -> None:
        with self._parent(path, make=True, follow_last=False) as (parent, name):
            # A new file moved into place: a link, a FIFO or a shared inode that stands there is replaced, not written.
            draft = f".palestra-{secrets.token_hex(8)}"
            file = _open(path, draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, parent)
            try:
                with os.fdopen(file, "wb") as stream:
                    stream.write(data)
                os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError as error:
                os.unlink(draft, dir_fd=parent)
                raise SandboxError(f"{path!r} cannot be written: {error.strerror}") from error

    def names(self, path: str) -> tuple[str, ...]:
        with self._folder(path) as folder:
            return tuple(sorted(os.listdir(folder)))

    def check_folder(self, path: str) -> None:
        """Raise SandboxError unless ``path`` is a folder of the workspace."""
        with self._folder(path):
            pass

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        with self._parent(path, make=False, follow_last=True) as (parent, name):
            folder = _open(path, name, FOLDER, parent)
            try:
                yield folder
            finally:
                os.close(folder)

    @contextmanager
    def _parent(self, path: str, *, make: bool, follow_last: bool) -> Iterator[tuple[int, str]]:
        """The folder that holds the last part of ``path``, and that part's name ("." for the workspace itself)."""
        stack = [_open(path, ".", FOLDER, self.root)]
        try:
            name = self._walk(path, stack, make, follow_last)
            yield stack[-1], name
        finally:
            for folder in stack:
                os.close(folder)

    def _walk(self, path: str, stack: list[int], make: bool, follow_last: bool) -> str:
        parts = list(reversed(self._relative(path, path).split("/")))
        links = 0
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if len(stack) == 1:
                    raise SandboxError(f"{path!r} leaves the workspace; name a path inside it")
                os.close(stack.pop())
                continue
            is_last = not any(rest not in ("", ".") for rest in parts)
            target = _link_target(part, stack[-1]) if follow_last or not is_last else None
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise SandboxError(f"{path!r} runs through more than {MAX_LINKS} symbolic links")
                if target.startswith("/"):
                    target = self._relative(target, path)
                    while len(stack) > 1:
                        os.close(stack.pop())
                parts.extend(reversed(target.split("/")))
            elif is_last:
                return part
            else:
                stack.append(_enter(path, part, stack[-1], make))
        return "."

    def _relative(self, path: str, asked: str) -> str:
        if "\0" in path or not path:
            raise SandboxError(f"{asked!r} is no path: it is empty or holds a NUL byte")
        if not path.startswith("/"):
            return path
        inside = os.path.normpath(path) if "/../" not in f"{path}/" else path
        if inside != self.inside and not inside.startswith(self.inside + "/"):
            raise SandboxError(f"{asked!r} leaves the workspace {self.inside!r}; name a path inside it")
        return inside[len(self.inside) :].lstrip("/") or "."


def _link_target(name: str, folder: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:  # EINVAL: not a link; ENOENT: the open that follows says so
        return None


def _enter(path: str, part: str, folder: int, make: bool) -> int:
    if make:
        try:
            os.mkdir(part, 0o755, dir_fd=folder)
        except FileExistsError:
            pass  # what stands there is opened below, and refused there unless it is a folder
        except OSError as error:
            raise SandboxError(f"{path!r} cannot be made: {error.strerror}") from error
    return _open(path, part, FOLDER, folder)


def _open(path: str, name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags, 0o644, dir_fd=folder)
    except (OSError, ValueError) as error:
        raise SandboxError(f"{path!r} cannot be opened: {getattr(error, 'strerror', None) or error}") from error
