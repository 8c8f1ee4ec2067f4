"""Removing what a killed process left. All of ours on the host bears its owner's name: nobody else's is touched.

Mounts and sandboxed processes need no janitor: they live in the keeper's namespaces, and the kernel ends both with it.
What can be left are an empty folder (where the keeper's mounts were), the folder of a ``process`` sandbox, and cgroups.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import time
from pathlib import Path

from palestra.sandboxes.trees import remove_tree

_NAME = re.compile(r"palestra-(keeper|process|group)-(\d+)-(\d+)-(\d+)-")


def name(kind: str) -> str:
    """The start of a name of ours: process namespace, process id and its start time in clock ticks, so that neither a
    process id used again nor one of another container is taken for its owner."""
    pid = os.getpid()
    return f"palestra-{kind}-{_namespace()}-{pid}-{_started(pid)}-"


def is_abandoned(entry: str) -> bool:
    """Whether a name is of ours and its owner is gone."""
    found = _NAME.match(entry)
    if not found or int(found[2]) != _namespace():
        return False
    return _started(int(found[3])) != int(found[4])


def sweep_folders(where: Path | None = None) -> list[str]:
    """Remove abandoned folders of the temporary folder; returns their names. What is not ours to remove is left."""
    where = where or Path(tempfile.gettempdir())
    gone = [entry for entry in os.listdir(where) if is_abandoned(entry)]
    folder = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    swept = []
    try:
        for entry in gone:
            with contextlib.suppress(OSError):  # another user's, or another janitor was faster
                remove_tree(folder, entry)
                swept.append(entry)
    finally:
        os.close(folder)
    return swept


def sweep_groups(parent: Path) -> list[str]:
    """Kill what is in abandoned cgroups under ``parent`` and remove them; returns their names."""
    swept = []
    for entry in os.listdir(parent):
        if is_abandoned(entry):
            with contextlib.suppress(OSError):
                _empty(parent / entry)
                (parent / entry).rmdir()
                swept.append(entry)
    return swept


def _empty(group: Path, seconds: float = 1.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pids = (group / "cgroup.procs").read_text().split()
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.005)  # the kernel reaps at its own pace, and nobody else is served by us yet


def _namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _started(pid: int) -> int:
    """When a process started, in clock ticks since boot; 0 where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[19])
    except OSError:
        return 0
