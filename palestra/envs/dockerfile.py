"""What a Dockerfile asks for, as far as a sandbox without a container engine can honour it.

Honoured: ``FROM`` an image of Python, Debian or Ubuntu (a Python image must be of this interpreter's minor version),
``WORKDIR``, ``COPY`` and ``ADD`` of what lies beside the Dockerfile, ``ENV``, ``RUN pip install`` of distributions that
are installed here (at the version named, where one is), ``RUN apt-get …`` of packages that are installed here.
Everything else that would change what a program sees is an error that names the line: nothing is skipped silently."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath

from palestra.envs.lines import read_text
from palestra.errors import BundleError

NOTES = ("CMD", "ENTRYPOINT", "LABEL", "EXPOSE", "MAINTAINER", "STOPSIGNAL", "HEALTHCHECK", "SHELL", "USER", "ARG")
"""Instructions that change nothing of the files, or nothing that a sandbox would do otherwise."""
SKIPPED = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml", "singularity-compose.yaml", ".dockerignore")
_BASES = re.compile(r"^(?:docker\.io/)?(?:library/)?(python|debian|ubuntu)(?::([\w.-]+))?(?:@sha256:[0-9a-f]+)?$")


@dataclass(frozen=True)
class Image:
    """workdir   where the work stands
    files     path below ``workdir`` -> file of the host
    env       variables
    packages  installed distributions that programs may import, with what those need
    """

    workdir: str = "/app"
    files: Mapping[str, Path] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


def read_image(folder: Path, workdir: str | None = None) -> Image:
    """What the bundle's ``environment/`` gives. Without a Dockerfile, or with one that copies nothing, all files beside
    it are the work. ``workdir``: where task.toml names one.

    Raises BundleError naming file and line of what cannot be honoured here."""
    file = folder / "Dockerfile"
    builder = _Builder(folder, file, workdir)
    if file.exists():
        for number, line in _instructions(read_text(file, 1 << 20)):
            builder.take(number, line)
    return builder.image()


def _instructions(text: str) -> Iterator[tuple[int, str]]:
    """(line number, instruction) with continued lines joined and comments left out."""
    first, joined = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or (not line.strip() and not joined):
            continue
        first = first or number
        if line.rstrip().endswith("\\"):
            joined += line.rstrip()[:-1] + " "
            continue
        yield first, (joined + line).strip()
        first, joined = 0, ""
    if joined:
        yield first, joined.strip()


class _Builder:
    def __init__(self, folder: Path, file: Path, workdir: str | None) -> None:
        self.folder, self.file, self.asked = folder, file, workdir
        self.workdir = "/"
        self.copied: dict[str, Path] = {}
        self.env: dict[str, str] = {}
        self.packages: list[str] = []
        self.copies = False

    def take(self, number: int, line: str) -> None:
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        try:
            match word.upper():
                case "FROM":
                    self._from(rest)
                case "WORKDIR":
                    self.workdir = str(PurePosixPath(self.workdir, rest))
                case "COPY" | "ADD":
                    self._copy(rest)
                case "ENV":
                    self.env |= dict(_variables(rest))
                case "RUN":
                    self._run(rest)
                case note if note in NOTES:
                    pass
                case _:
                    raise BundleError(f"{word} is not known here")
        except BundleError as error:
            raise BundleError(f"{self.file}:{number}: {error}; run it in a container engine") from None
        except ValueError as error:
            raise BundleError(f"{self.file}:{number}: cannot be read: {error}") from None

    def _from(self, image: str) -> None:
        found = _BASES.match(image.split(" ")[0])
        if not found:
            raise BundleError(f"image {image!r} is none that can be honoured here")
        version = re.match(r"(\d+)\.(\d+)", found[2] or "")
        if found[1] == "python" and version and (int(version[1]), int(version[2])) != sys.version_info[:2]:
            here = f"{sys.version_info[0]}.{sys.version_info[1]}"
            raise BundleError(f"asks for Python {version[0]}, this interpreter is {here}")

    def _copy(self, rest: str) -> None:
        words = shlex.split(rest)
        if any(word.startswith("--from") for word in words):
            raise BundleError("COPY --from needs a container engine")
        *sources, target = [word for word in words if not word.startswith("--")]
        self.copies = True
        place = PurePosixPath(self.workdir, target)
        for source in sources:
            found = (self.folder / source).resolve()
            if not found.is_relative_to(self.folder.resolve()) or not found.exists():
                raise BundleError(f"COPY {source}: there is no such file beside the Dockerfile")
            if found.is_dir():
                self.copied |= {str(place / name): file for name, file in _below(found)}
            else:
                into = target.endswith("/") or len(sources) > 1 or target in (".", "./") or str(place) == self.workdir
                self.copied[str(place / found.name if into else place)] = found

    def _run(self, command: str) -> None:
        for part in re.split(r"&&|;", command):
            words = shlex.split(part)
            while words and re.fullmatch(r"\w+=\S*", words[0]):
                words = words[1:]
            match words:
                case [] | ["rm", "-rf", "/var/lib/apt/lists/*"] | ["true"]:
                    continue
                case ["apt-get" | "apt", *rest] if {"update", "clean", "autoremove"} & set(rest):
                    continue
                case ["apt-get" | "apt", *rest] if "install" in rest:
                    _check_debian([word for word in rest if not word.startswith("-") and word != "install"])
                case ["pip" | "pip3", "install", *rest]:
                    self.packages += [_installed(word) for word in rest if not word.startswith("-")]
                case ["python" | "python3", "-m", "pip", "install", *rest]:
                    self.packages += [_installed(word) for word in rest if not word.startswith("-")]
                case ["mkdir", "-p", *_]:
                    continue
                case _:
                    raise BundleError(f"RUN {part.strip()[:60]!r} is none that can be honoured here")

    def image(self) -> Image:
        workdir = self.asked or (self.workdir if self.workdir != "/" else "/app")
        if not self.copies:
            files = {name: file for name, file in _below(self.folder) if name not in SKIPPED}
            return Image(workdir, files, self.env, closure(self.packages))
        outside = [place for place in self.copied if not PurePosixPath(place).is_relative_to(workdir)]
        if outside:
            raise BundleError(f"{self.file}: copies to {outside[0]}, outside the work in {workdir}: no such place here")
        files = {str(PurePosixPath(place).relative_to(workdir)): file for place, file in self.copied.items()}
        return Image(workdir, files, self.env, closure(self.packages))


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield file.relative_to(folder).as_posix(), file


def _variables(rest: str) -> Iterator[tuple[str, str]]:
    words = shlex.split(rest)
    if words and "=" not in words[0]:
        yield words[0], " ".join(words[1:])
        return
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"ENV {word!r} has no value")
        yield name, value


@cache
def _debian(package: str) -> bool:
    """Whether a Debian package is installed on this machine."""
    try:
        asked = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True, timeout=30, check=False
        )
    except OSError:
        return False
    return asked.stdout == "install ok installed"


def _check_debian(packages: list[str]) -> None:
    for package in packages:
        name = package.partition("=")[0]
        if not _debian(name):
            raise BundleError(f"needs the system package {name}, which is not installed here: apt-get install {name}")


def _installed(requirement: str) -> str:
    found = re.fullmatch(r"([A-Za-z0-9][\w.-]*)(?:\[[\w,]+\])?(?:==([\w.+!]+))?", requirement)
    if not found:
        raise BundleError(f"pip install {requirement!r}: only NAME or NAME==VERSION can be checked")
    try:
        version = metadata.version(found[1])
    except metadata.PackageNotFoundError:
        told = f"needs the package {found[1]}, which is not installed here: pip install {requirement}"
        raise BundleError(told) from None
    if found[2] and version != found[2]:
        raise BundleError(f"needs {requirement}, {version} is installed here: pip install {requirement}")
    return found[1]


def closure(packages: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """``packages`` and the installed ones that they need, in order of being found."""
    found: dict[str, None] = {}
    waiting = list(packages)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop(0)).lower()
        if name in found:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found[name] = None
        waiting += [re.split(r"[^\w.-]", need, maxsplit=1)[0] for need in needs if "extra ==" not in need]
    return tuple(found)
