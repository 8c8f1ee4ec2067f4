"""What an agent leaves behind, copied by value: regular files within bounds, and nothing that points elsewhere.

A grader never looks into a workspace in which graded code has run. It gets bytes, by path; a link, a device, a socket,
a set-uid file, or what is too large is left out and named. Caches of bytecode and the history of a repository are no
work of the agent's: they are left out and not named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from palestra.errors import GraderError
from palestra.sandboxes.base import Limits, Sandbox

FIND = "/usr/bin/find"
_LINE = "%y\\t%m\\t%n\\t%s\\t%p\\0"
_IGNORED = ("__pycache__", ".git")
_KINDS = {"l": "a symbolic link", "p": "a FIFO", "s": "a socket", "b": "a device", "c": "a device"}
_SET_ID = 0o6000


@dataclass(frozen=True, slots=True)
class Bounds:
    """files, bytes of all of them, bytes of one, and folders within each other, at most."""

    files: int = 2000
    total_bytes: int = 32 << 20
    file_bytes: int = 4 << 20
    depth: int = 32


@dataclass(frozen=True, slots=True)
class Collected:
    """files     path relative to the workspace -> bytes
    left_out  path -> why, for what may not be handed to a grader
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


async def collect(sandbox: Sandbox, names: Sequence[str] = (".",), bounds: Bounds = Bounds()) -> Collected:
    """The files ``names``, and all files below those that are folders. A name that does not exist gives nothing.

    Raises SandboxError where the sandbox cannot be used, and GraderError for a name that leads out of the workspace."""
    for name in names:
        if name.startswith(("/", "-")) or ".." in name.split("/") or not name or "\0" in name:
            raise GraderError(f"artifact {name!r} must be a path inside the workspace, as src/main.py")
    argv = [FIND, "-P", *names, "-maxdepth", str(bounds.depth), "-printf", _LINE]
    limits = Limits(wall_s=30, cpu_s=30, processes=16, output_bytes=16 << 20)
    listed = await sandbox.exec(argv, limits=limits)
    if listed.truncated or listed.timed_out:
        return Collected(left_out={".": "holds more names than can be listed"})
    files: dict[str, bytes] = {}
    left_out: dict[str, str] = {}
    total = 0
    for path, size, reason in _entries(listed.stdout):
        if not reason and size > bounds.file_bytes:
            reason = f"has {size} bytes, at most {bounds.file_bytes} are copied"
        elif not reason and (len(files) >= bounds.files or total + size > bounds.total_bytes):
            reason = f"is beyond {bounds.files} files or {bounds.total_bytes} bytes"
        if reason:
            left_out[path] = reason
        elif path not in files:
            files[path] = await sandbox.read(path, max_bytes=bounds.file_bytes)
            total += len(files[path])
    return Collected(files, left_out)


def _entries(listing: bytes) -> Iterator[tuple[str, int, str]]:
    """(path, size, why it may not be copied or "") of each entry that is no folder, in order of path."""
    found: list[tuple[str, int, str]] = []
    for line in listing.split(b"\0"):
        if not line:
            continue
        kind, mode, links, size, raw = line.split(b"\t", 4)
        path = raw.decode("utf-8", "surrogateescape").removeprefix("./")
        if kind == b"d" or any(part in _IGNORED for part in path.split("/")):
            continue
        found.append((path, int(size), _reason(kind.decode(), int(mode, 8), int(links), path)))
    return iter(sorted(found))


def _reason(kind: str, mode: int, links: int, path: str) -> str:
    if kind != "f":
        return f"is {_KINDS.get(kind, 'no regular file')}"
    if mode & _SET_ID:
        return "is set-uid or set-gid"
    if links > 1:
        return "has more than one name (a hard link)"
    return "has a name that is not UTF-8" if not path.isascii() and not _is_text(path) else ""


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
