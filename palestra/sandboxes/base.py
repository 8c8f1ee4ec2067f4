"""The sandbox contract.

A sandbox is an async context manager around one workspace. What a sandboxed program does, however bad, comes back as
an ``ExecResult``; ``SandboxError`` means that the sandbox itself could not be made or used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self


@dataclass(frozen=True, slots=True)
class Mount:
    """A host path seen read-only inside at ``target`` (an absolute path; the same path when None)."""

    source: Path
    target: Path | None = None


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
    """

    wall_s: float = 30.0
    cpu_s: float | None = 30.0
    memory_mib: int | None = 2048
    processes: int | None = 256
    file_mib: int | None = 256
    open_files: int | None = 256
    output_bytes: int = 1 << 20
    network: bool = False


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
    ) -> ExecResult: ...

    async def read(self, path: str) -> bytes: ...

    async def write(self, path: str, data: bytes) -> None: ...

    async def close(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...
