"""Resource limits of a process that waits to begin: they are inherited by all that it starts."""

from __future__ import annotations

import math
import resource

from palestra.sandboxes.base import Limits


def table(limits: Limits) -> dict[int, int]:
    """Kernel limit -> value. Core dumps are always off."""
    values: dict[int, int | None] = {
        resource.RLIMIT_CPU: None if limits.cpu_s is None else math.ceil(limits.cpu_s),
        resource.RLIMIT_AS: None if limits.memory_mib is None else limits.memory_mib << 20,
        # One more for the shell that waits as process 1.
        resource.RLIMIT_NPROC: None if limits.processes is None else limits.processes + 1,
        resource.RLIMIT_FSIZE: None if limits.file_mib is None else limits.file_mib << 20,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    return {kind: value for kind, value in values.items() if value is not None}


def apply(pid: int, limits: Limits) -> None:
    """Set them, soft and hard, on a running process. A hard limit of the host that is lower stays."""
    for kind, value in table(limits).items():
        hard = resource.prlimit(pid, kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, kind, (bound, bound))
