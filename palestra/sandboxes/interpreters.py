"""What a Python interpreter needs of the host to start inside a sandbox: no more than that is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from palestra.errors import SandboxError
from palestra.sandboxes.base import Mount
from palestra.sandboxes.bwrap import SYSTEM

PROBE = """
import json, sys
prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
facts = {"version": list(sys.version_info[:3]), "prefixes": prefixes}
for name in ("ctypes", "ssl", "sqlite3", "bz2", "lzma", "zlib"):
    try:
        __import__(name)
    except ImportError:
        pass
with open("/proc/self/maps") as maps:
    facts["libraries"] = sorted({line.split(None, 5)[5].rstrip() for line in maps if line.count("/") and ".so" in line})
print(json.dumps(facts))
"""


def python_mounts(executable: str = sys.executable) -> tuple[Mount, ...]:
    """The prefix and base prefix of an interpreter, its shared libraries, and every link on the way to it.

    Site-packages that lie in its prefix come with it; hide a folder with ``Mount(folder, mask=True)``.
    Raises SandboxError where ``executable`` is no working Python of version 3.8 or newer."""
    facts = probe(executable)
    wanted = [Path(path) for path in dict.fromkeys(facts["prefixes"])]
    wanted += [Path(path) for path in facts["libraries"]]
    links, real = _links(Path(executable))
    wanted.append(real)
    covered: list[Path] = [Path(path) for path in SYSTEM]
    mounts: list[Mount] = []
    for path in sorted(set(wanted), key=lambda path: len(path.parts)):
        for place in dict.fromkeys((path, path.resolve())):
            if not any(place.is_relative_to(parent) for parent in covered):
                mounts.append(Mount(place.resolve(), place))
                covered.append(place)
    return (*mounts, *(Mount(link) for link in links if not any(link.is_relative_to(parent) for parent in covered)))


def probe(executable: str) -> dict[str, Any]:
    """version, prefixes and libraries of an interpreter of this machine, found by running it isolated (``-I``)."""
    try:
        stamp = os.stat(executable)
    except OSError as error:
        raise SandboxError(
            f"Python interpreter {executable!r} cannot be found: {error.strerror}; name its full path"
        ) from error
    return _probe(executable, stamp.st_mtime_ns, stamp.st_ino)


@cache
def _probe(executable: str, mtime_ns: int, inode: int) -> dict[str, Any]:
    del mtime_ns, inode  # parts of the cache key alone: another file at the same path is another interpreter
    try:
        ran = subprocess.run([executable, "-I", "-c", PROBE], capture_output=True, timeout=30, env={}, check=True)
        facts: dict[str, Any] = json.loads(ran.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise SandboxError(
            f"{executable!r} is no working Python interpreter: {error}; name one of version 3.8 or newer"
        ) from error
    if tuple(facts["version"]) < (3, 8):
        raise SandboxError(f"{executable!r} is Python {facts['version']}; expected 3.8 or newer")
    return facts


def _links(path: Path) -> tuple[list[Path], Path]:
    """The symbolic links on the way from ``path``, and the file at their end."""
    links: list[Path] = []
    path = Path(os.path.abspath(path))
    while path.is_symlink() and path not in links:
        links.append(path)
        path = Path(os.path.abspath(path.parent / os.readlink(path)))
    return links, path.resolve()
