"""palestra sandbox run | shell | check"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from palestra.cli.common import AsJson, emit

if TYPE_CHECKING:
    from palestra.sandboxes import ExecResult
    from palestra.sandboxes.conformance import Report, Verdict

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
Backend = Annotated[str, typer.Option(help="local, process (UNSAFE: no isolation), container or remote.")]
Workspace = Annotated[
    Path | None, typer.Option(help="A folder to work in; without it, an empty one that is thrown away.")
]
Image = Annotated[str | None, typer.Option(help="For container: an image's name, or a folder with a Dockerfile.")]
Network = Annotated[bool, typer.Option("--network", help="Let the command reach the network.")]


@app.command("run", context_settings={"allow_interspersed_args": False})
def run(
    argv: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.", metavar="-- ARGV")],
    backend: Backend = "local",
    timeout: Annotated[float, typer.Option(help="Wall-clock seconds.")] = 30.0,
    memory_mib: Annotated[int, typer.Option(help="Memory, MiB.")] = 2048,
    network: Network = False,
    workspace: Workspace = None,
    image: Image = None,
    as_json: AsJson = False,
) -> None:
    """Run one command in a sandbox; the exit code is 0 when the command's is, otherwise 1.

    Example: palestra sandbox run --timeout 5 -- sh -c 'id; ls /'
    """
    import asyncio

    from palestra.sandboxes import Limits

    limits = Limits(wall_s=timeout, cpu_s=timeout, memory_mib=memory_mib, network=network)
    result = asyncio.run(_run(argv, backend, workspace, limits, image))
    if as_json:
        emit(True, _plain(result), "")
    else:
        _say(result)
    raise typer.Exit(0 if result.exit_code == 0 else 1)


@app.command("shell")
def shell(
    backend: Backend = "local", network: Network = False, workspace: Workspace = None, as_json: AsJson = False
) -> None:
    """Work in a sandbox by hand: a line is run when it is entered, end of file leaves.

    Example: palestra sandbox shell --workspace .
    """
    import asyncio

    from palestra.sandboxes import Limits

    code = asyncio.run(_shell(backend, workspace, Limits(wall_s=3600, cpu_s=3600, network=network), quiet=as_json))
    if as_json:
        emit(True, {"exit_code": code}, "")
    raise typer.Exit(0 if code == 0 else 1)


@app.command("check")
def check(
    backend: Annotated[str, typer.Argument(help="The back end to check.")] = "local",
    only: Annotated[list[str] | None, typer.Option(help="Names of cases; all when left out.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the conformance suite against a back end; exit 1 when a case fails.

    Example: palestra sandbox check local --json
    """
    import asyncio

    from palestra.errors import SandboxError, nearest
    from palestra.sandboxes import conformance
    from palestra.sandboxes.conformance.runner import load

    load()
    for name in only or ():
        if name not in conformance.CASES:
            raise SandboxError(f"unknown conformance case {name!r}: {nearest(name, conformance.CASES)}")
    report = asyncio.run(conformance.run(backend, only=only or (), tell=_tell))
    emit(as_json, _report(report), _summary(report))
    raise typer.Exit(0 if report.passed else 1)


async def _run(argv: list[str], backend: str, workspace: Path | None, limits: Any, image: str | None) -> ExecResult:
    from palestra.sandboxes import open_sandbox

    built = Path(image) if image and Path(image).is_dir() else image
    async with open_sandbox(backend, workspace=workspace, limits=limits, image=built) as box:
        return await box.exec(argv)


async def _shell(backend: str, workspace: Path | None, limits: Any, *, quiet: bool) -> int:
    """One call of the session per line; the exit code of the last."""
    import asyncio
    import sys

    from palestra.sandboxes import open_sandbox

    def hear(name: str, data: bytes) -> None:
        stream = sys.stderr if quiet or name == "stderr" else sys.stdout
        stream.buffer.write(data)
        stream.flush()

    code = 0
    async with open_sandbox(backend, workspace=workspace, limits=limits) as box:
        async with await box.session() as session:
            while session.is_open:
                if sys.stdin.isatty() and not quiet:
                    print("sandbox$ ", end="", file=sys.stderr, flush=True)
                line = await asyncio.to_thread(sys.stdin.readline)
                if not line:
                    break
                code = (await session.run(line.rstrip("\n"), on_output=hear)).exit_code
    return code


def _plain(result: ExecResult) -> dict[str, Any]:
    data = asdict(result)
    return data | {name: data[name].decode("utf-8", "replace") for name in ("stdout", "stderr")}


def _say(result: ExecResult) -> None:
    """For a person: what the command said, byte for byte, and one line about how it ended."""
    import sys

    for stream, data in ((sys.stdout, result.stdout), (sys.stderr, result.stderr)):
        stream.buffer.write(data)
        stream.flush()
    used = result.usage
    ended = f"exit {result.exit_code}, {used.wall_s:.3f} s wall, {used.cpu_s:.3f} s cpu"
    ended += f"; limits met: {', '.join(result.limits_hit)}" if result.limits_hit else ""
    print(f"palestra: {ended}; {', '.join(result.protections)}", file=sys.stderr)


def _tell(verdict: Verdict) -> None:
    import sys

    if sys.stderr.isatty() or verdict.status == "failed":
        print(f"{verdict.status:8}{verdict.name}  {verdict.reason}", file=sys.stderr)


def _report(report: Report) -> dict[str, Any]:
    counts = {status: report.count(status) for status in ("passed", "failed", "skipped")}
    cases = [asdict(verdict) for verdict in report.verdicts]
    return {"backend": report.backend, "protections": report.protections, **counts, "cases": cases}


def _summary(report: Report) -> str:
    counts = ", ".join(f"{report.count(status)} {status}" for status in ("passed", "failed", "skipped"))
    reasons = sorted({verdict.reason for verdict in report.verdicts if verdict.status == "skipped"})
    return "\n".join([f"{report.backend}: {counts}", *(f"  skipped: {reason}" for reason in reasons)])
