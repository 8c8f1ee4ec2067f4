"""The sandbox contract.

A sandbox is an async context manager around one workspace. What a sandboxed program does, however bad, comes back as
an ``ExecResult``; ``SandboxError`` means that the sandbox itself could not be made or used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, Self

from palestra.errors import SandboxError

StreamName = Literal["stdout", "stderr"]
OnOutput = Callable[[StreamName, bytes], None]
"""Called with every chunk that is kept, as it arrives."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path seen read-only inside at ``target`` (an absolute path; the same path when None).

    With ``mask`` nothing of the host is seen: an empty read-only folder hides whatever other mounts show at ``target``.
    """

    source: Path
    target: Path | None = None
    mask: bool = False

    @property
    def inside(self) -> Path:
        return self.source if self.target is None else self.target


@dataclass(frozen=True, slots=True)
class Limits:
    """What one ``exec`` may use. None leaves a limit off where the back end allows that.

    wall_s        wall-clock seconds; at the end the whole process tree is killed
    cpu_s         CPU seconds of one process
    memory_mib    address space of one process, MiB
    processes     processes and threads alive at once
    file_mib      size of one written file, MiB
    open_files    open descriptors of one process
    output_bytes  bytes kept of stdout and of stderr, each; the rest is discarded and ``truncated`` is set
    network       reach any network at all, loopback of the host included

    Raises SandboxError where a limit is not above zero: a limit of zero would forbid the command itself.
    """

    wall_s: float = 30.0
    cpu_s: float | None = 30.0
    memory_mib: int | None = 2048
    processes: int | None = 256
    file_mib: int | None = 256
    open_files: int | None = 256
    output_bytes: int = 1 << 20
    network: bool = False

    def __post_init__(self) -> None:
        for name in ("wall_s", "cpu_s", "memory_mib", "processes", "file_mib", "open_files", "output_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:  # also refuses NaN
                raise SandboxError(
                    f"limit {name} must be above 0, got {value!r}; leave it out for the default"
                    + ("" if name in ("wall_s", "output_bytes") else ", or None for no limit")
                )


@dataclass(frozen=True, slots=True)
class Usage:
    """wall_s, cpu_s in seconds; max_rss_mib is the largest resident set of any one process, MiB."""

    wall_s: float
    cpu_s: float
    max_rss_mib: float


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. ``exit_code`` is negative for a signal (−9 when the time-out killed it)."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    usage: Usage
    protections: tuple[str, ...] = field(default=())


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

    async def close(self) -> None:
        """Kill what runs and remove what was made. Never raises; a second call does nothing."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...
