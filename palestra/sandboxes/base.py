"""The sandbox contract.

A sandbox is an async context manager around one workspace. What a sandboxed program does, however bad, comes back as
an ``ExecResult``; ``SandboxError`` means that the sandbox itself could not be made or used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from palestra.errors import SandboxError

StreamName = Literal["stdout", "stderr"]
OnOutput = Callable[[StreamName, bytes], None]
"""Called with every chunk that is kept, as it arrives."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path seen read-only inside at ``target`` (an absolute path; the same path when None).

    With ``mask`` nothing of the host is seen: an empty read-only folder hides whatever other mounts show at ``target``.
    With ``link`` neither: ``target`` is a symbolic link to the inside path ``source``.
    """

    source: Path
    target: Path | None = None
    mask: bool = False
    link: bool = False

    @property
    def inside(self) -> Path:
        return self.source if self.target is None else self.target


@dataclass(frozen=True, slots=True)
class Limits:
    """What one ``exec`` may use. None leaves a limit off where the back end allows that.

    wall_s        wall-clock seconds; at the end the whole process tree is killed
    cpu_s         CPU seconds of one process
    memory_mib    address space of one process, MiB; with cgroups also resident memory of all together
    processes     processes and threads alive at once
    file_mib      size of one written file, MiB
    open_files    open descriptors of one process
    output_bytes  bytes kept of stdout and of stderr, each; the rest is discarded and ``truncated`` is set
    network       reach any network at all, loopback of the host included
    cpus          CPU seconds per second of all together (needs cgroups); None: as many as there are
    disk_mib      workspace, /tmp and /dev/shm together, MiB, and 64 files or folders for each MiB; fixed when a sandbox
                  is opened. Of a workspace that is a folder of yours: what it grows by, looked at every 0.1 s

    Raises SandboxError where a limit is not above zero (a limit of zero would forbid the command itself), is no number
    of its kind, or is more than a kernel can be told.
    """

    wall_s: float = 30.0
    cpu_s: float | None = 30.0
    memory_mib: int | None = 2048
    processes: int | None = 256
    file_mib: int | None = 256
    open_files: int | None = 256
    output_bytes: int = 1 << 20
    network: bool = False
    cpus: float | None = None
    disk_mib: int = 1024

    def __post_init__(self) -> None:
        for limit in fields(self):
            if limit.name != "network":
                _check(limit.name, getattr(self, limit.name))


_NEEDED = ("wall_s", "output_bytes", "disk_mib")
_REAL = ("wall_s", "cpu_s", "cpus")
_LEAST = {"cpus": 0.01}
_MOST = {"processes": (1 << 22) - 2, "cpus": 1 << 16}  # what the kernel takes in a group
_MOST_ELSE = 1 << 40


def _check(name: str, value: Any) -> None:
    if value is None and name not in _NEEDED:
        return
    whole = name not in _REAL
    is_number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    least, most = _LEAST.get(name, 0), _MOST.get(name, _MOST_ELSE)
    if is_number and least <= value <= most and value > 0:  # NaN is not
        return
    kind = "a whole number " if whole and not isinstance(value, int) else ""
    bound = f"at most {most}" if is_number and value > most else f"at least {least}" if least else "above 0"
    optional = "" if name in _NEEDED else ", or None for no limit"
    raise SandboxError(f"limit {name} must be {kind}{bound}, got {value!r}; leave it out for the default{optional}")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a command used, the command's descendants included.

    wall_s, cpu_s    seconds
    max_rss_mib      largest resident set of any one process, MiB (never below the 10 or so of what starts it)
    peak_memory_mib  most memory of all together at once, MiB, files in the workspace included; None without cgroups
    """

    wall_s: float
    cpu_s: float
    max_rss_mib: float
    peak_memory_mib: float | None = None


class Protection(StrEnum):
    """What stood between a command and the host while it ran. Stored with each rollout."""

    NO_ISOLATION = "unsafe-no-isolation"
    USER_NAMESPACE = "user-namespace"
    MOUNT_NAMESPACE = "mount-namespace"
    PID_NAMESPACE = "pid-namespace"
    IPC_NAMESPACE = "ipc-namespace"
    UTS_NAMESPACE = "uts-namespace"
    CGROUP_NAMESPACE = "cgroup-namespace"
    NETWORK_NAMESPACE = "network-namespace"
    READ_ONLY_ROOT = "read-only-root"
    PRIVATE_TMP = "private-tmp"
    DISK_LIMIT = "disk-limit"
    NO_CAPABILITIES = "no-capabilities"
    NO_NEW_PRIVILEGES = "no-new-privileges"
    SECCOMP = "seccomp"
    RLIMITS = "rlimits"
    CGROUP_LIMITS = "cgroup-limits"
    WATCHDOG = "watchdog"
    CLEAR_ENVIRONMENT = "clear-environment"
    CONTAINER = "container"
    REMOTE = "remote"


LimitName = Literal["wall_s", "cpu_s", "memory_mib", "processes", "file_mib", "output_bytes", "disk_mib"]


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. ``exit_code`` is negative for a signal (−9 when the time-out killed it).

    A shell that waits for the command reports a signal n as 128 + n, so that ``exit 137`` and a kill look alike: both
    are given as −9. ``limits_hit`` names the limits that were seen to be met; one that a program ran into and coped
    with by itself (ENOMEM, EMFILE) is the program's own affair and not in it."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    usage: Usage
    protections: tuple[str, ...] = field(default=())
    limits_hit: tuple[LimitName, ...] = field(default=())


@dataclass(frozen=True)
class Snapshot:
    """A frozen state of a workspace. Its files live as long as a snapshot or a sandbox refers to them.

    how           "overlay": nothing was copied; "reflink": the file system shares the blocks; "copy": all was copied
    copied_bytes  what the taking of it copied
    state         of the back end that took it
    """

    how: Literal["overlay", "reflink", "copy"]
    copied_bytes: int
    state: object = field(repr=False, compare=False)


class Sandbox(Protocol):
    """One isolated workspace. Paths of ``read`` and ``write`` are relative to it and may not leave it."""

    async def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        limits: Limits | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecResult:
        """Run ``argv`` in ``cwd`` and wait until nothing that it started is left.

        Raises SandboxError: empty argv, a NUL byte, a name of ``env`` that no shell can export, ``cwd`` outside the
        workspace, the sandbox closed, or the back end unable to start. Cancelling kills the process tree first."""
        ...

    async def read(self, path: str, *, max_bytes: int = 64 << 20) -> bytes:
        """The bytes of a regular file of the workspace.

        Raises SandboxError: outside the workspace, absent, not a regular file, or larger than ``max_bytes``."""
        ...

    async def write(self, path: str, data: bytes) -> None:
        """Write a file whole, replacing what stood there, making its folders.

        Raises SandboxError: outside the workspace, or a folder stands there."""
        ...

    async def list(self, path: str = ".") -> tuple[str, ...]:
        """The names in a folder of the workspace, sorted; undecodable bytes as surrogate escapes.

        Raises SandboxError: outside the workspace, or not a folder."""
        ...

    async def snapshot(self) -> Snapshot:
        """Freeze the workspace as it is; the sandbox goes on from there. /tmp is not part of it.

        Raises SandboxError: a command or a session is running, or the back end has no snapshots."""
        ...

    async def fork(self, snapshot: Snapshot | None = None) -> Self:
        """Another sandbox whose workspace starts as ``snapshot`` (None: as this one is now); neither sees what the
        other does from then on.

        Raises SandboxError: as ``snapshot``, or a snapshot of another back end."""
        ...

    async def session(self, *, env: Mapping[str, str] | None = None, limits: Limits | None = None) -> Session:
        """A shell that persists between calls. ``limits.wall_s`` is for one call, not for the session.

        Raises SandboxError: as ``exec``, or the back end has no sessions."""
        ...

    async def close(self) -> None:
        """Kill what runs and remove what was made. Never raises; a second call does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...


class Session(Protocol):
    """A shell whose folder, variables and background jobs persist from call to call."""

    @property
    def is_open(self) -> bool: ...

    async def run(
        self, command: str, *, timeout_s: float | None = None, on_output: OnOutput | None = None
    ) -> ExecResult:
        """Run a piece of shell. At the time-out what it started is killed; jobs of earlier calls live on.
        Output of background jobs comes with the call during which it was written.

        Raises SandboxError: a NUL byte, a time-out that is not above 0, or the session has ended (by ``exit``,
        ``exec``, or because the shell itself did not answer at a time-out)."""
        ...

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...
