"""Find a package's source without importing it, and what its distribution says of it."""

from __future__ import annotations

import difflib
import importlib.machinery
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from palestra.errors import ForgeError

MOST_FILES = 2000
TESTS = ("test", "tests", "testing", "conftest")


@dataclass(frozen=True, slots=True)
class Package:
    """A package on disk.

    name      its import name
    root      the folder that a path search finds it in
    licence   as its distribution states it, "unknown" where it does not
    licence_files  the texts that go with copies of its source
    """

    name: str
    root: Path
    version: str
    licence: str
    licence_files: tuple[Path, ...]

    @property
    def entry(self) -> str:
        """Its folder or file in ``root``: the folder where there are both, as the import system has it."""
        return entry_of(self.root, self.name) or f"{self.name}.py"

    def modules(self) -> Iterator[tuple[str, Path]]:
        """(dotted name, file) of every module but tests, in order of name.

        Raises ForgeError where there are more than MOST_FILES."""
        if self.entry.endswith(".py"):
            yield self.name, self.root / self.entry
            return
        files = sorted((self.root / self.name).rglob("*.py"))
        if len(files) > MOST_FILES:
            raise ForgeError(
                f"{self.name}: has {len(files)} modules, at most {MOST_FILES} are read; name a sub-package's path"
            )
        for file in files:
            parts = file.relative_to(self.root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if not any(part in TESTS or part.startswith("test_") for part in parts):
                yield ".".join(parts), file


def entry_of(root: Path, name: str) -> str | None:
    """The folder or file in ``root`` that ``import name`` finds, or None: a package first, then a module, then a
    folder without ``__init__``, as the import system has it."""
    if (root / name / "__init__.py").is_file():
        return name
    if (root / f"{name}.py").is_file():
        return f"{name}.py"
    return name if (root / name).is_dir() else None


def find_package(source: str) -> Package:
    """The installed package ``source``, or the one at the path ``source`` (a folder with ``__init__.py``, or a file).

    Raises ForgeError where there is none (with the nearest installed name), or where it has no Python source."""
    if "/" in source or source.endswith(".py"):
        return _at_path(Path(source))
    name = source.replace("-", "_")
    if not name.isidentifier():
        raise ForgeError(f"package {source!r}: not a name that can be imported, nor a path with a / in it")
    spec = importlib.machinery.PathFinder.find_spec(name)
    if spec is None:
        if name in sys.stdlib_module_names or name in sys.builtin_module_names:
            raise ForgeError(
                f"package {source!r}: is built into the interpreter and has no Python source to forge from"
            )
        raise ForgeError(f"package {source!r}: is not installed; {_nearest_installed(name)}")
    origin = Path(spec.origin) if spec.origin and spec.has_location else None
    if origin is None or origin.suffix != ".py":
        raise ForgeError(f"package {source!r}: has no Python source to forge from (found {spec.origin or 'no file'})")
    root = origin.parent.parent if origin.name == "__init__.py" else origin.parent
    return _described(name, root)


def _at_path(path: Path) -> Package:
    path = path.resolve()
    if not (path.suffix == ".py" and path.is_file()) and not (path / "__init__.py").is_file():
        raise ForgeError(f"{path}: must be a Python file or a folder with an __init__.py")
    return Package(path.stem, path.parent, "unknown", "unknown", tuple(_licence_texts(path.parent.glob("*"))))


def _described(name: str, root: Path) -> Package:
    owners = metadata.packages_distributions().get(name)
    if not owners:
        return Package(name, root, "unknown", "unknown", ())
    found = metadata.distribution(owners[0])
    told = found.metadata
    classified = [line for line in told.get_all("Classifier", ()) if line.startswith("License ::")]
    stated = (
        _field(told, "License-Expression")
        or _field(told, "License")
        or " and ".join(line.rpartition(" :: ")[2] for line in classified)
    )
    licence = (stated or "unknown").strip().splitlines()[0][:100]
    texts = _licence_texts(Path(str(file.locate())) for file in found.files or ())
    return Package(name, root, found.version, licence, tuple(texts))


def _field(told: metadata.PackageMetadata, name: str) -> str:
    return told[name] if name in told else ""


def _licence_texts(files: Iterable[Path]) -> Iterator[Path]:
    words = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")
    return (file for file in files if file.name.upper().startswith(words) and file.is_file())


def _nearest_installed(name: str) -> str:
    known = {top for top in metadata.packages_distributions() if top.isidentifier() and not top.startswith("_")}
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean {close[0]}?" if close else "install it beside palestra first, or give the path of its source"
