"""Control groups, version 1 or 2, where the host lets us: bounds and accounts of a whole process tree.

A sandbox has one group. It is used again by a later sandbox when it is seen to be empty; its name holds our process id,
so that the janitor knows whose it was.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from palestra.sandboxes import janitor
from palestra.sandboxes.base import Limits

_NO_LIMIT_V1 = str((1 << 63) - 4096)
_PERIOD_US = 100_000
_MOST_IDLE = 16


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups are made. version 1: one folder per controller; version 2: one for all."""

    version: int
    parents: dict[str, Path]


@dataclass(frozen=True, slots=True)
class Account:
    """What a group saw: peak memory of all its processes together, and how often a bound was met."""

    peak_mib: float
    memory_kills: int
    process_refusals: int


@cache
def hierarchy() -> Hierarchy | None:
    """The place where we may make groups with memory and process bounds, or None (``missing`` says why)."""
    mounts = _mounts()
    ours = _own_groups()
    found: dict[str, Path] = {
        name: mounts[name] / ours[name].lstrip("/")
        for name in ("memory", "pids", "cpu")
        if name in mounts and name in ours
    }
    if {"memory", "pids"} <= found.keys():
        usable = {name: path for name, path in found.items() if os.access(path, os.W_OK)}
        return Hierarchy(1, usable) if {"memory", "pids"} <= usable.keys() else None
    if "" in mounts and "" in ours:
        return _unified(mounts[""], mounts[""] / ours[""].lstrip("/"))
    return None


def _unified(top: Path, own: Path) -> Hierarchy | None:
    """Ours, or the nearest ancestor, that hands memory and pids down to its children and that we may write to."""
    for place in (own, *own.parents):
        with contextlib.suppress(OSError):
            handed = (place / "cgroup.subtree_control").read_text().split()
            if {"memory", "pids"} <= set(handed) and os.access(place, os.W_OK):
                return Hierarchy(2, {name: place for name in ("memory", "pids", "cpu") if name in handed})
        if place == top:
            return None
    return None


def missing() -> str:
    """Why there are no groups, and the way to have them."""
    return (
        "no writable cgroup with memory and pids controllers: a watchdog looks after memory and processes instead; "
        "for the kernel's own bounds: systemd-run --user --scope -p Delegate=yes palestra ..."
    )


def _mounts() -> dict[str, Path]:
    """Controller -> mount point; "" is the unified hierarchy."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found[""] = Path(place)
        elif kind == "cgroup":
            found.update((name, Path(place)) for name in options.split(",") if name in ("memory", "pids", "cpu"))
    return found


def _own_groups() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        found.update((name, path) for name in controllers.split(","))
    return found


@dataclass
class Group:
    """One group: ``set`` bounds it, ``add`` moves a process in, ``account`` reads it."""

    place: Hierarchy
    folders: dict[str, Path]
    _before: tuple[int, int] = (0, 0)

    @classmethod
    def make(cls, place: Hierarchy, name: str) -> Group:
        folders = {controller: parent / name for controller, parent in place.parents.items()}
        for folder in dict.fromkeys(folders.values()):
            folder.mkdir()
        return cls(place, folders)

    def set(self, limits: Limits) -> None:
        memory = None if limits.memory_mib is None else limits.memory_mib << 20
        # One more for the shell that waits as process 1.
        self._write("pids", "pids.max", "max" if limits.processes is None else str(limits.processes + 1))
        quota = None if limits.cpus is None else str(int(limits.cpus * _PERIOD_US))
        if self.place.version == 1:
            self._write("memory", "memory.limit_in_bytes", _NO_LIMIT_V1 if memory is None else str(memory))
            self._write("memory", "memory.max_usage_in_bytes", "0")
            self._write("cpu", "cpu.cfs_quota_us", quota or "-1")
        else:
            self._write("memory", "memory.max", "max" if memory is None else str(memory))
            self._write("cpu", "cpu.max", f"{quota or 'max'} {_PERIOD_US}")
        self._before = self._counts()

    def add(self, pid: int) -> None:
        for folder in dict.fromkeys(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def account(self) -> Account:
        name = "memory.max_usage_in_bytes" if self.place.version == 1 else "memory.peak"
        peak = self._read("memory", name)
        kills, refusals = (after - before for after, before in zip(self._counts(), self._before, strict=True))
        return Account(int(peak or 0) / (1 << 20), kills, refusals)

    def is_empty(self) -> bool:
        return all(not self._read(name, "cgroup.procs") for name in self.folders)

    def remove(self) -> bool:
        """False where a process is still in it."""
        try:
            for folder in dict.fromkeys(self.folders.values()):
                folder.rmdir()
        except OSError:
            return False
        return True

    def _counts(self) -> tuple[int, int]:
        """Memory kills and process refusals so far."""
        memory = "memory.oom_control" if self.place.version == 1 else "memory.events"
        return _field(self._read("memory", memory), "oom_kill"), _field(self._read("pids", "pids.events"), "max")

    def _write(self, controller: str, name: str, text: str) -> None:
        if controller in self.folders:
            (self.folders[controller] / name).write_text(text)

    def _read(self, controller: str, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):  # memory.peak is younger than version 2
            return (self.folders[controller] / name).read_text()
        return ""


def _field(text: str, name: str) -> int:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


@dataclass
class Groups:
    """Groups of this process, used again when empty."""

    place: Hierarchy
    idle: list[Group] = field(default_factory=list)
    count: int = 0

    def take(self, limits: Limits) -> Group:
        while self.idle:
            group = self.idle.pop()
            with contextlib.suppress(OSError):  # busy: memory of an earlier use is not given back yet
                if group.is_empty():
                    group.set(limits)
                    return group
            group.remove()
        self.count += 1
        group = Group.make(self.place, f"{janitor.name('group')}{self.count}")
        group.set(limits)
        return group

    def give(self, group: Group) -> None:
        if len(self.idle) < _MOST_IDLE:
            self.idle.append(group)
        else:
            group.remove()

    def clear(self) -> None:
        while self.idle:
            self.idle.pop().remove()
