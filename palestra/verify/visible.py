"""Which installed packages graded code can import: those that are named, and no other.

The site folders of the interpreter are hidden whole, with their .pth files, plug-ins, and the original of whatever the
graded code should write itself. What is named is shown read-only in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from palestra.errors import GraderError
from palestra.sandboxes.base import Mount
from palestra.sandboxes.interpreters import python_mounts

LIB = Path("/opt/palestra/lib")
INSIDE = Path("/opt/palestra/inside")


def site_folders() -> list[Path]:
    """Where this interpreter and its base look for installed packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = [Path(prefix) / "lib" for prefix in dict.fromkeys((sys.prefix, sys.base_prefix, "/usr", "/usr/local"))]
    folders = [place / name / kind for place in places for name in (version, "python3") for kind in _KINDS]
    return [folder for folder in folders if folder.is_dir()]


_KINDS = ("site-packages", "dist-packages")


def python_view(packages: Sequence[str] = ()) -> list[Mount]:
    """The interpreter without its site folders, and the named distributions in LIB.

    Raises GraderError where a distribution is not installed."""
    hidden = [Mount(folder, mask=True) for folder in site_folders()]
    return [*python_mounts(), *hidden, *(mount for name in packages for mount in _shown(name))]


def _shown(name: str) -> list[Mount]:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise GraderError(f"package {name!r} is not installed, so graded code cannot be given it") from None
    root = Path(str(found.locate_file("")))
    tops = {Path(str(file)).parts[0] for file in found.files or ()}
    wanted = sorted(top for top in tops if top != ".." and not top.endswith(".pth") and top != "__pycache__")
    return [Mount(root / top, LIB / top) for top in wanted if (root / top).exists()]
