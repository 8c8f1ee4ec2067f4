"""Run calls of a function in a sandbox and bring the results back as plain data.

The results come on a file that the worker opened before the called code was imported, each line led by a per-run
nonce; stdout and the exit code say nothing about a result. See ``inside.worker`` for the protocol."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palestra.sandboxes import open_sandbox
from palestra.sandboxes.base import ExecResult, Limits, Mount, Sandbox
from palestra.sandboxes.interpreters import python_mounts
from palestra.verify import inside

INSIDE = Path("/opt/palestra/inside")
SOURCE = Path("/opt/palestra/source")
MOST_RESTARTS = 3
IMPORT_S = 10.0


@dataclass(frozen=True, slots=True)
class Target:
    """The function to call: ``path`` within ``module``, imported from the host folder ``root``. With an empty path and
    no calls, the module is imported and that is all.

    names   entries of ``root`` that the sandbox may see; everything in it when empty"""

    root: Path
    module: str
    path: str
    names: tuple[str, ...] = ()

    def mounts(self) -> list[Mount]:
        if not self.names:
            return [Mount(self.root, SOURCE)]
        return [Mount(self.root / name, SOURCE / name) for name in self.names]


@dataclass(frozen=True, slots=True)
class Result:
    """One call, ``seconds`` of CPU and ``wall_s`` seconds long: ``value`` is the literal of what it returned, or None
    with the reason in ``error`` (it raised, or ran out of time) or ``unsuitable`` (not plain data). ``iterates``: the
    literal lists what the returned iterator gave; ``mutates``: an argument was changed."""

    value: str | None = None
    seconds: float = 0.0
    iterates: bool = False
    mutates: bool = False
    error: str | None = None
    unsuitable: str | None = None
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CallRun:
    """What a run of calls showed.

    results  one per argument list, in order
    refused  why nothing could be called, else None; ``missing`` is the module that the import could not find
    effects  (call index or "import", event, detail), as seen by an audit hook
    state    names of process-wide or module state that the calls changed
    files    the package's modules and data files that were used, relative to its root
    """

    results: tuple[Result, ...]
    refused: str | None = None
    missing: str | None = None
    import_s: float = 0.0
    effects: tuple[tuple[int | str | None, str, str], ...] = ()
    state: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    printed: bytes = b""
    max_rss_mib: float = 0.0
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a fresh process may differ in without a sound function noticing."""

    hash_seed: int = 0
    timezone: str = "UTC"
    locale: str = "C.UTF-8"
    cwd: str = "."

    home: str = "/nowhere"

    def env(self) -> dict[str, str]:
        named = {"TZ": self.timezone, "LC_ALL": self.locale, "LANG": self.locale, "HOME": self.home}
        return {"PYTHONHASHSEED": str(self.hash_seed), **named}


@dataclass(slots=True)
class _Gathered:
    results: dict[int, Result] = field(default_factory=dict)
    refused: str | None = None
    missing: str | None = None
    imported: float | None = None
    end: Mapping[str, Any] | None = None


async def run_calls(
    target: Target,
    args: Sequence[str],
    *,
    around: Surroundings = Surroundings(),
    call_s: float = 0.5,
    wall_s: float = 60.0,
    memory_mib: int = 1024,
    iterate: int = 64,
) -> CallRun:
    """Call ``target`` once per argument list, all in one process of one fresh sandbox.

    call_s   CPU seconds of one call (and twenty times as many of any kind)
    iterate  items read of an iterator at most

    A call that kills or hangs the process gets an error, and the rest is run in a new process, MOST_RESTARTS times at
    most. Raises SandboxError where no sandbox can be made."""
    limits = Limits(wall_s=wall_s, cpu_s=wall_s, memory_mib=memory_mib, processes=32, file_mib=64)
    mounts = [*python_mounts(), Mount(Path(inside.__file__).parent, INSIDE), *target.mounts()]
    gathered, printed, rss, deaths = _Gathered(), b"", 0.0, 0
    async with open_sandbox("local", mounts=mounts) as sandbox:
        first = 0
        while gathered.end is None and gathered.refused is None:
            request = _request(target, args[first:], first, call_s, iterate)
            ended = await _exec(sandbox, request, around, limits)
            printed, rss = printed + ended.stdout + ended.stderr, max(rss, ended.usage.max_rss_mib)
            _gather(gathered, await sandbox.read("results"), request["nonce"])
            if gathered.imported is None and gathered.refused is None:
                gathered.refused = _died("its import", ended, wall_s)
            if gathered.end is None and gathered.refused is None:
                deaths += 1
                first = max(gathered.results, default=first - 1) + 1
                gathered.results[first] = Result(error=_died("the call", ended, wall_s))
                first += 1
                if deaths > MOST_RESTARTS:
                    gathered.refused = "its calls killed or hung the process again and again"
    return _run(gathered, len(args), printed, rss, deaths)


def _request(target: Target, args: Sequence[str], first: int, call_s: float, iterate: int) -> dict[str, Any]:
    return {
        "root": str(SOURCE),
        "module": target.module,
        "symbol": target.path,
        "args": list(args),
        "first": first,
        "nonce": secrets.token_hex(8),
        "call_s": call_s,
        "import_s": IMPORT_S,
        "iterate": iterate,
    }


async def _exec(sandbox: Sandbox, request: Mapping[str, Any], around: Surroundings, limits: Limits) -> ExecResult:
    await sandbox.write("results", b"")
    await sandbox.write(f"{around.cwd}/.here", b"")
    return await sandbox.exec(
        # Not -I: it would ignore PYTHONHASHSEED. The environment is ours, so that nothing else of -I is lost.
        [sys.executable, "-s", "-S", "-P", str(INSIDE / "worker.py"), os.path.relpath("results", around.cwd)],
        cwd=around.cwd,
        env=around.env(),
        stdin=json.dumps(request).encode(),
        limits=limits,
    )


def _gather(gathered: _Gathered, data: bytes, nonce: str) -> None:
    lead = nonce.encode() + b" "
    for line in data.splitlines():
        if not line.startswith(lead):
            continue  # not written by the worker of this run
        try:
            said = json.loads(line[len(lead) :])
        except ValueError:
            continue  # cut off by the end of the process
        if "i" in said:
            gathered.results[said["i"]] = Result(
                value=said.get("v"),
                seconds=said.get("s", 0.0),
                iterates=bool(said.get("it")),
                mutates="mut" in said,
                error=said.get("e"),
                unsuitable=said.get("u"),
                wall_s=said.get("w", 0.0),
            )
        gathered.refused = said.get("refused", gathered.refused)
        gathered.missing = said.get("missing", gathered.missing)
        gathered.imported = said.get("import", gathered.imported)
        gathered.end = said.get("end", gathered.end)


def _died(what: str, ended: ExecResult, wall_s: float) -> str:
    return (
        f"{what} did not end within {wall_s} s"
        if ended.timed_out
        else f"{what} ended the process (exit code {ended.exit_code})"
    )


def _run(gathered: _Gathered, count: int, printed: bytes, rss: float, deaths: int) -> CallRun:
    end = gathered.end or {}
    missing = Result(error="was not reached")
    return CallRun(
        results=tuple(gathered.results.get(index, missing) for index in range(count)),
        refused=gathered.refused,
        missing=gathered.missing,
        import_s=gathered.imported or 0.0,
        effects=tuple((call, event, detail) for call, event, detail in end.get("effects", ())),
        state=tuple(end.get("state", ())),
        files=tuple([*end.get("modules", ()), *end.get("data", ())]),
        printed=printed,
        max_rss_mib=rss,
        deaths=deaths,
    )
