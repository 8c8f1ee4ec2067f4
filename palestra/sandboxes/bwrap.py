"""The arguments of bubblewrap: what a sandbox sees of the host, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from palestra.errors import SandboxError
from palestra.sandboxes.base import Mount

INSIDE = "/workspace"
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""The toolchain of the host: programs and libraries that any user may read."""
ETC = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ssl/certs",
    "/etc/localtime",
)
"""What programs look up in /etc that tells nothing of the host's people or secrets."""
KERNEL = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/acpi",
    "/proc/sysrq-trigger",
)
NAMESPACES = ("user", "pid", "ipc", "uts", "cgroup")


@cache
def find_bwrap() -> str:
    """The path of bubblewrap. Raises SandboxError, with the command that installs it, where there is none."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError(
            "the local sandbox needs bubblewrap (bwrap), which is not on PATH: apt-get install bubblewrap; "
            "for trusted code only, the process back end runs without isolation"
        )
    return found


@dataclass(frozen=True, slots=True)
class View:
    """The host folders that a sandbox writes to, and what else it sees."""

    workspace: str
    tmp: str
    shm: str
    mounts: tuple[Mount, ...] = ()
    read_only: bool = False


def arguments(view: View, *, network: bool) -> list[str]:
    """Everything up to the command."""
    args = ["--die-with-parent", "--as-pid-1", "--clearenv", "--cap-drop", "ALL", "--hostname", "sandbox"]
    args += [f"--unshare-{name}" for name in NAMESPACES]
    args += [] if network else ["--unshare-net"]
    args += ["--uid", "1000", "--gid", "1000"]
    for path in SYSTEM:
        args += _system(path)
    for path in ETC:
        args += ["--ro-bind-try", path, path]
    if network:
        args += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"]
    bind = "--ro-bind" if view.read_only else "--bind"
    args += ["--dev", "/dev", bind, view.shm, "/dev/shm", "--remount-ro", "/dev", *_proc()]
    args += ["--bind", view.tmp, "/tmp"]
    for mount in view.mounts:
        args += _mount(mount)  # below /tmp too, where the host keeps an interpreter there
    args += ["--remount-ro", "/tmp"] if view.read_only else []
    return [*args, bind, view.workspace, INSIDE, "--chdir", INSIDE, "--remount-ro", "/"]


def _proc() -> list[str]:
    """/proc of the new namespaces, read-only and with what tells of the host's kernel covered.

    A sandbox made by real root runs as real root's number on the host, though without any capability; the kernel lets
    the owner of a file under /proc/sys write to it, so nothing there may be writable."""
    covered = [arg for path in KERNEL if os.path.exists(path) for arg in _cover(path)]
    return ["--proc", "/proc", *covered, "--remount-ro", "/proc"]


def _cover(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--tmpfs", path, "--remount-ro", path]
    return ["--ro-bind", "/dev/null", path]


def _system(path: str) -> list[str]:
    if os.path.islink(path):
        return ["--symlink", os.readlink(path), path]
    return ["--ro-bind", path, path] if os.path.isdir(path) else []


def _mount(mount: Mount) -> Iterator[str]:
    source, inside = os.fspath(mount.source), os.fspath(mount.inside)
    if not os.path.isabs(inside) or "\0" in source + inside:
        raise SandboxError(f"mount target {inside!r} must be an absolute path")
    if mount.mask:
        return iter(("--tmpfs", inside, "--remount-ro", inside))
    if mount.link:
        return iter(("--symlink", source, inside))
    source = os.path.abspath(source)  # the keeper, which starts bubblewrap, is in another folder
    if os.path.islink(source):
        return iter(("--symlink", os.readlink(source), inside))
    if not os.path.exists(source):
        raise SandboxError(f"mount {source!r} does not exist on the host; name an existing file or folder")
    return iter(("--ro-bind", source, inside))
