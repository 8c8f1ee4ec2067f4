"""What this machine can do, found by trying, and the command that mends each lack."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from palestra.errors import SandboxError
from palestra.sandboxes import bwrap, cgroups, seccomp
from palestra.sandboxes.base import Limits
from palestra.sandboxes.interpreters import probe
from palestra.sandboxes.local import LocalSandbox


@dataclass(frozen=True, slots=True)
class Ability:
    """status: "yes", "no", or "partly" (it works, with less); mend: the command that gives it, or """ ""

    name: str
    status: str
    detail: str
    mend: str = ""


def survey() -> list[Ability]:
    """All abilities, most basic first. Nothing heavy is imported: torch and ray are looked up by their metadata."""
    checks: tuple[Callable[[], Ability], ...] = (_bubblewrap, _sandbox, _overlay, _cgroups, _filter, _containers)
    found = [check() for check in checks]
    return [*found, _interpreters(), *_packages(), _gpu(), _browser()]


def _bubblewrap() -> Ability:
    try:
        program = bwrap.find_bwrap()
    except SandboxError:
        return Ability("bubblewrap", "no", "bwrap is not on PATH", "apt-get install bubblewrap")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    version = said.stdout.strip()
    numbers = tuple(map(int, re.findall(r"\d+", version)))
    if numbers < (0, 5):
        return Ability(
            "bubblewrap", "no", f"{version} at {program}; expected 0.5 or newer", "apt-get install bubblewrap"
        )
    return Ability("bubblewrap", "yes", f"{version} at {program}")


def _sandbox() -> Ability:
    """The whole way: keeper, namespaces, limits, one command."""

    async def one() -> tuple[str, ...]:
        async with LocalSandbox(None, (), Limits(wall_s=10)) as box:
            return (await box.exec(["true"])).protections

    try:
        protections = asyncio.run(one())
    except SandboxError as error:
        mend = "sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1"
        return Ability("local sandbox", "no", str(error), mend)
    return Ability("local sandbox", "yes", ", ".join(protections))


def _overlay() -> Ability:
    async def how() -> str:
        async with LocalSandbox(None, (), Limits()) as box:
            return (await box.snapshot()).how

    try:
        found = asyncio.run(how())
    except SandboxError as error:
        return Ability("snapshots by overlay", "no", str(error))
    if found == "overlay":
        return Ability("snapshots by overlay", "yes", "forks copy nothing")
    return Ability("snapshots by overlay", "partly", f"forks are made by {found}", "use Linux 6.6 or newer")


def _cgroups() -> Ability:
    place = cgroups.hierarchy()
    if place is None:
        mend = "systemd-run --user --scope -p Delegate=yes palestra doctor"
        return Ability("cgroups", "partly", cgroups.missing(), mend)
    return Ability("cgroups", "yes", f"version {place.version}: {', '.join(place.parents)}")


def _filter() -> Ability:
    machine = platform.machine()
    if not seccomp.supported():
        return Ability(
            "call filter", "no", f"none is written for {machine}; for {' and '.join(seccomp.ARCHES)} there is"
        )
    return Ability("call filter", "yes", f"{len(seccomp.program()) // 8} instructions for {machine}")


def _containers() -> Ability:
    from palestra.sandboxes.container import find_engine

    try:
        engine = find_engine()
    except SandboxError as error:
        return Ability("container engine", "no", str(error), "apt-get install podman")
    return Ability("container engine", "yes", engine)


def _interpreters() -> Ability:
    found = sorted(set(_pythons()))
    listed = ", ".join(f"{'.'.join(map(str, version))} at {path}" for version, path in found)
    return Ability(
        "Python 3.8 or newer", "yes" if found else "no", listed or "none", "" if found else "apt-get install python3"
    )


def _pythons() -> Iterator[tuple[tuple[int, ...], str]]:
    folders = [*os.get_exec_path(), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    seen = set()
    for folder in folders:
        for path in sorted(Path(folder).glob("python3*")) if os.path.isdir(folder) else []:
            real = path.resolve()
            if not re.fullmatch(r"python3(\.\d+)?", path.name) or real in seen or not os.access(path, os.X_OK):
                continue
            seen.add(real)
            try:
                yield tuple(probe(str(path))["version"]), str(path)
            except SandboxError:
                continue  # too old, or a shim for a version that is not chosen: not an interpreter for us


def _packages() -> Iterator[Ability]:
    for name in ("torch", "ray", "gymnasium"):
        if importlib.util.find_spec(name) is None:
            yield Ability(name, "no", "not installed", f"pip install {name}")
        else:
            yield Ability(name, "yes", _version(name))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _gpu() -> Ability:
    cards = sorted(Path("/proc/driver/nvidia/gpus").glob("*")) if os.path.isdir("/proc/driver/nvidia/gpus") else []
    if cards or os.path.exists("/dev/kfd"):
        return Ability("GPU", "yes", f"{len(cards)} NVIDIA" if cards else "AMD")
    return Ability("GPU", "no", "none is seen; everything runs on the CPU")


def _browser() -> Ability:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return Ability("browser", "yes", str(shutil.which(name)))
    return Ability("browser", "no", "no Chromium on PATH (only browser tests need one)", "apt-get install chromium")
