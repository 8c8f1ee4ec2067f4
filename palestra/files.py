"""Writing so that a reader, or a crash, never meets half a file."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from palestra.errors import OutputError, boundary


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A new folder beside ``target``, which takes its place when the block ends well and vanishes when it does not.

    Everything in it is on disk (fsync) before the rename. An existing ``target`` is replaced. OutputError when the
    place cannot be written, a full disk included.
    """
    with boundary(OutputError, f"{target}: cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with boundary(OutputError, f"{target}: cannot be written"):
            yield fresh
            sync_tree(fresh)
            if target.exists():
                shutil.rmtree(target)
            fresh.rename(target)
            _sync(target.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A new file beside ``target``, to be filled, which takes its place when the block ends well and vanishes when it
    does not. OutputError when it cannot be written."""
    with boundary(OutputError, f"{target}: cannot be written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        os.close(handle)
        try:
            yield Path(name)
            _sync(Path(name))
            os.chmod(name, 0o644)
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)


def atomic_write(target: Path, data: bytes) -> None:
    """Write ``target`` whole or not at all. OutputError when it cannot be written."""
    with atomic_file(target) as fresh:
        fresh.write_bytes(data)


def tree_hash(folder: Path) -> str:
    """SHA-256 over the names and contents of all files below ``folder``, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def sync_tree(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
