"""Resource limits of a process that waits to begin: they are inherited by all that it starts."""

from __future__ import annotations

import math
import resource

from palestra.sandboxes.base import Limits


def table(limits: Limits) -> dict[int, tuple[int, int]]:
    """Kernel limit -> (soft, hard). Core dumps are always off."""
    infinity = resource.RLIM_INFINITY
    cpu = infinity if limits.cpu_s is None else math.ceil(limits.cpu_s)
    # One more for the shell that waits as process 1. The kernel counts by user and namespace, and lets real root pass.
    processes = infinity if limits.processes is None else limits.processes + 1
    memory = infinity if limits.memory_mib is None else limits.memory_mib << 20
    size = infinity if limits.file_mib is None else limits.file_mib << 20
    files = infinity if limits.open_files is None else limits.open_files
    values = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_FSIZE: size,
        resource.RLIMIT_NOFILE: files,
        resource.RLIMIT_CORE: 0,
    }
    # SIGXCPU at the soft limit tells which limit it was; SIGKILL a second later for what ignores it.
    above = cpu if cpu == infinity else cpu + 1
    return {resource.RLIMIT_CPU: (cpu, above)} | {kind: (value, value) for kind, value in values.items()}


def apply(pid: int, limits: Limits) -> None:
    """Set them on a running process. A hard limit of the host that is lower stays."""
    for kind, (soft, hard) in table(limits).items():
        most = resource.prlimit(pid, kind)[1]
        if most != resource.RLIM_INFINITY:
            soft, hard = (most if value == resource.RLIM_INFINITY else min(value, most) for value in (soft, hard))
        resource.prlimit(pid, kind, (soft, hard))
