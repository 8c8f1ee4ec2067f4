"""From the raw end of a child to an ``ExecResult``."""

from __future__ import annotations

import signal

from palestra.sandboxes.base import ExecResult, LimitName, Limits, Usage
from palestra.sandboxes.cgroups import Account
from palestra.sandboxes.pump import Ended

_SHELL_SIGNAL = range(129, 129 + 64)


def exit_code(code: int) -> int:
    """−n where a shell reports a signal n as 128 + n."""
    return 128 - code if code in _SHELL_SIGNAL else code


def result(
    ended: Ended,
    limits: Limits,
    protections: tuple[str, ...],
    *,
    account: Account | None = None,
    watched: tuple[LimitName, ...] = (),
) -> ExecResult:
    code = -signal.SIGKILL if ended.timed_out else exit_code(ended.exit.code)
    usage = Usage(ended.wall_s, ended.exit.cpu_s, ended.exit.rss_mib, account.peak_mib if account else None)
    hit: list[LimitName] = list(watched)
    if ended.timed_out:
        hit.append("wall_s")
    elif code == -signal.SIGXCPU or (
        code == -signal.SIGKILL and limits.cpu_s is not None and ended.exit.cpu_s >= limits.cpu_s
    ):
        hit.append("cpu_s")
    elif code == -signal.SIGXFSZ:
        hit.append("file_mib")
    if account and account.memory_kills:
        hit.append("memory_mib")
    if account and account.process_refusals:
        hit.append("processes")
    if ended.truncated:
        hit.append("output_bytes")
    return ExecResult(
        exit_code=code,
        stdout=ended.stdout,
        stderr=ended.stderr,
        timed_out=ended.timed_out,
        truncated=ended.truncated,
        usage=usage,
        protections=protections,
        limits_hit=tuple(dict.fromkeys(hit)),
    )
