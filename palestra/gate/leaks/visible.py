"""Everything the agent sees, as texts with names: files, members of archives, and what is written in base64 or hex."""

from __future__ import annotations

import base64
import binascii
import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST_BYTES = 8 << 20
"""Of one file or member; a larger one is not looked at, and said so."""
UNPACKED_BYTES = 64 << 20
"""Of everything packed in one bundle."""
MEMBERS = 2000
DEPTH = 3
_ENCODED = re.compile(rb"(?:[A-Za-z0-9+/]{40,}={0,2}|[A-Za-z0-9_-]{40,}={0,2}|(?:[0-9a-fA-F]{2}){24,})")


@dataclass(frozen=True, slots=True)
class Visible:
    """name  the path within the bundle, with what it was found in: ``environment/a.zip!b.txt``, ``…!base64 on line 3``
    data  the bytes;  None where there are more than LARGEST_BYTES, or where an archive cannot be opened"""

    name: str
    data: bytes | None


def visible_of(bundle: Path) -> list[Visible]:
    """The instruction and every file below ``environment/``, in order of name; links are not followed."""
    files = [bundle / "instruction.md"]
    environment = bundle / "environment"
    files += sorted(file for file in environment.rglob("*") if file.is_file() and not file.is_symlink())
    unpacker = _Unpacker()
    found: list[Visible] = []
    for file in files:
        name = file.relative_to(bundle).as_posix()
        too_large = not file.is_file() or file.stat().st_size > LARGEST_BYTES
        found += unpacker.within(name, None if too_large else file.read_bytes(), DEPTH)
    return found


class _Unpacker:
    """Looks into what is packed, until UNPACKED_BYTES are spent: an archive of archives must not hold up the gate."""

    def __init__(self) -> None:
        self.left = UNPACKED_BYTES

    def within(self, name: str, data: bytes | None, depth: int) -> Iterator[Visible]:
        yield Visible(name, data)
        if data is None or not depth:
            return
        for inner, content in _members(data):
            self.left -= len(content or b"")
            yield from self.within(f"{name}!{inner}", content if self.left > 0 else None, depth - 1)
            if self.left <= 0:
                return
        for found in _ENCODED.finditer(data):
            line = data.count(b"\n", 0, found.start()) + 1
            for how, content in _decodings(found.group()):
                yield Visible(f"{name}!{how} on line {line}", content)


def _decodings(text: bytes) -> Iterator[tuple[str, bytes]]:
    """What ``text`` says when it is base64 or hex, where that is text."""
    padded = text.rstrip(b"=") + b"=" * (-len(text.rstrip(b"=")) % 4)
    for how, decode in (
        ("base64", base64.b64decode),
        ("base64", base64.urlsafe_b64decode),
        ("hex", binascii.unhexlify),
    ):
        try:
            content = decode(padded if how == "base64" else text)
        except (binascii.Error, ValueError):
            continue
        if content and sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in content) > 0.9 * len(content):
            yield how, content
            return


def _members(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    """What is packed in ``data``: members of a zip or a tar, or the one content of a compressed file."""
    for magic, opened in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open)):
        if data.startswith(magic):
            yield "content", _bounded(opened, io.BytesIO(data))
            return
    if zipfile.is_zipfile(io.BytesIO(data)):
        yield from _zip(data)
    # A tar has its mark at a fixed place of its first block.
    elif data[257:262] == b"ustar":
        yield from _tar(data)


def _bounded(opened: Callable[..., Any], *given: Any) -> bytes | None:
    """The content of what ``opened(*given)`` gives, or None where it is broken or longer than LARGEST_BYTES."""
    try:
        file = opened(*given)
        content: bytes = b"" if file is None else file.read(LARGEST_BYTES + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, RuntimeError, ValueError, NotImplementedError):
        return None
    except zipfile.BadZipFile:
        return None
    return content if len(content) <= LARGEST_BYTES else None


def _zip(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist()[:MEMBERS]:
                if not entry.is_dir():
                    yield entry.filename, _bounded(archive.open, entry)
    except (zipfile.BadZipFile, OSError, ValueError):
        yield "unreadable", None


def _tar(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for _, entry in zip(range(MEMBERS), archive, strict=False):
                if entry.isreg():
                    yield entry.name, _bounded(archive.extractfile, entry)
    except (tarfile.TarError, OSError, ValueError):
        yield "unreadable", None
