"""The one line of shell that a waiting sandbox reads and runs.

A sandbox starts as ``/bin/sh -c INIT``: process 1 of its own process namespace, waiting to read one line from its
standard input. The line carries environment, folder and command; what follows the line on the same pipe is the
command's own standard input (``read`` takes one byte at a time from a pipe, so none of it is lost). When the command
ends, process 1 ends, and the kernel kills whatever is left in the namespace before the parent hears of it.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence

from palestra.errors import SandboxError
from palestra.sandboxes.base import Limits

INIT = "n='\n'; IFS= read -r s || exit 125; eval \"$s\""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
BASE_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
}


def prelude(cwd: str, env: Mapping[str, str]) -> str:
    """Into the folder, and the environment set. Raises SandboxError for a name that no shell can export."""
    parts = [f"cd -- {_quote(cwd)} || exit 125; unset OLDPWD"]
    for name, value in env.items():
        if not _NAME.match(name):
            raise SandboxError(
                f"environment variable {name!r} must be letters, digits and _, not starting with a digit"
            )
        parts.append(f"export {name}={_quote(value)}")
    return "; ".join(parts)


def command_line(argv: Sequence[str], cwd: str, env: Mapping[str, str], *, limits: Limits | None = None) -> bytes:
    """The line for ``argv``, newline included; with ``limits`` the shell sets them, where we cannot from outside.

    Raises SandboxError where it cannot be a command."""
    if isinstance(argv, str) or not argv or not argv[0]:
        raise SandboxError(f"a command is a non-empty list of strings, got {argv!r}; name a program first")
    # The shell's own words ("Killed") must not mix with the command's: it talks to /dev/null, the command to fd 3.
    # A child, since process 1 ignores signals that it has no handler for; exec in it, so that no builtin is meant.
    # With no list after it, a shell may turn into its last command; the exit keeps that a child.
    run = f"(exec {' '.join(map(_quote, argv))}) 2>&3 3>&-"
    line = f"{prelude(cwd, env)}; {_ulimits(limits)}exec 3>&2 2>/dev/null; {run}; exit $?"
    return line.encode("utf-8", "surrogateescape") + b"\n"


def _ulimits(limits: Limits | None) -> str:
    """Limits in the shell's own words: -v in KiB, -f in blocks of 512 bytes; as in ``rlimits``."""
    if limits is None:
        return ""
    values = {
        "S -t": None if limits.cpu_s is None else math.ceil(limits.cpu_s),
        "H -t": None if limits.cpu_s is None else math.ceil(limits.cpu_s) + 1,
        "v": None if limits.memory_mib is None else limits.memory_mib << 10,
        "f": None if limits.file_mib is None else limits.file_mib << 11,
        "n": limits.open_files,
        "c": 0,
    }
    return "".join(f"ulimit -{letter} {value} || exit 125; " for letter, value in values.items() if value is not None)


def replacement(argv: Sequence[str], env: Mapping[str, str]) -> bytes:
    """The line with which process 1 itself becomes ``argv``."""
    return f"{prelude('.', env)}; exec {' '.join(map(_quote, argv))}\n".encode("utf-8", "surrogateescape")


def _quote(text: str) -> str:
    if "\0" in text:
        raise SandboxError(f"{text[:80]!r} holds a NUL byte; no argument or variable can")
    return shlex.quote(text).replace("\n", "'\"$n\"'")
