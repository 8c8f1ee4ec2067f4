"""palestra gate …"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palestra.cli.common import AsJson, emit

if TYPE_CHECKING:
    from palestra.gate.config import GateConfig

app = typer.Typer(help="Admit environments.", no_args_is_help=True, rich_markup_mode=None)
Level = Annotated[
    str | None,
    typer.Option(
        "--level", help="quick: gold and null; full: also mutants and cheats; exhaustive: all mutants. [default: full]"
    ),
]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the gate.")]
Bundles = Annotated[list[Path], typer.Argument(metavar="BUNDLE", help="Bundles, or folders of bundles.")]


@app.command("check")
def check(
    bundles: Bundles,
    level: Level = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Check bundles and write a certificate into each that passes; exit 1 when one is refused, 2 when the gate failed.

    Example: palestra gate check envs --level full
    """
    from palestra.cli.progress import progress
    from palestra.gate import check as check_bundles

    config = _config(level, settings)
    with progress("gate") as step:
        reports = check_bundles(bundles, config=config, progress=step)
    counts = {verdict: sum(r.verdict == verdict for r in reports) for verdict in ("admitted", "refused", "void")}
    lines = [f"{r.verdict}  {r.id}{r.reason and ': '}{r.reason}" for r in reports]
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    emit(as_json, {**counts, "bundles": [report.plain() for report in reports]}, "\n".join(lines))
    raise typer.Exit(2 if counts["void"] else 1 if counts["refused"] else 0)


def _config(level: str | None, settings: list[str] | None) -> GateConfig:
    from palestra.config import load_config
    from palestra.errors import ConfigError, nearest
    from palestra.gate.config import LEVELS, GateConfig

    if level is not None and level not in LEVELS:
        raise ConfigError(f"--level {level!r}: unknown, {nearest(level, LEVELS)}")
    asked = [] if level is None else [f"level={level}"]
    return load_config(GateConfig, overrides=[*asked, *(settings or ())])


@app.command("attack")
def attack(bundles: Bundles, as_json: AsJson = False) -> None:
    """Run every scripted cheat against bundles, in sandboxes; exit 1 when one gets through, or none could be run.

    Example: palestra gate attack envs
    """
    import asyncio

    from palestra.cli.progress import progress
    from palestra.gate.attack import attack_bundles

    with progress("attack") as step:
        reports = asyncio.run(attack_bundles(bundles, progress=step))
    lines = []
    for report in reports:
        run = [one for one in report.probes if one.outcome != "not applicable"]
        lines.append(f"{report.id}: {report.reason or f'{len(run)} cheats, {len(report.leaked)} leaked'}")
        lines += [
            f"  leaked  {one.probe.name} ({one.probe.kind}): {one.told}; {one.probe.defence}" for one in report.leaked
        ]
    leaked = sum(bool(report.leaked) for report in reports)
    unfit = sum(report.is_unfit for report in reports)
    lines.append(f"{len(reports) - leaked - unfit} held, {leaked} leaked, {unfit} could not be attacked")
    data = {"bundles": [report.plain() for report in reports], "leaked": leaked, "unfit": unfit}
    emit(as_json, data, "\n".join(lines))
    raise typer.Exit(1 if leaked or unfit else 0)


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of bundles.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the tables are written.")] = Path(
        "gate-report"
    ),
    level: Level = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Check a folder of bundles and write report.json, report.csv and report.html; goes on where it was stopped.

    Example: palestra gate report envs --out gate-report
    """
    import asyncio

    from palestra.cli.progress import progress
    from palestra.errors import OutputError, boundary
    from palestra.gate.audit import audit, write_tables

    config = _config(level, settings)
    with boundary(OutputError, f"{out}: cannot be made"):
        out.mkdir(parents=True, exist_ok=True)
    with progress("gate") as step:
        found = asyncio.run(audit(folder, out / "audit.jsonl", config=config, progress=step))
    files = write_tables(found, out)
    counts = found.counts()
    lines = [f"refused by {check}: {count}" for check, count in found.refused_by().items()]
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f"; {files[-1]}")
    emit(as_json, found.plain(), "\n".join(lines))
    raise typer.Exit(2 if counts["void"] else 1 if counts["refused"] else 0)


@app.command("verify")
def verify(
    bundles: Bundles,
    signed_by: Annotated[
        Path | None, typer.Option("--signed-by", metavar="FILE", help="A public key that must have signed each.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Re-derive each bundle's content hash and compare it with its certificate; exit 1 when one does not hold.

    Example: palestra gate verify envs
    """
    from palestra.gate import verify as verify_bundle
    from palestra.gate.signature import public_key

    wanted = None if signed_by is None else public_key(signed_by)
    found = [result for bundle in bundles for result in verify_bundle(bundle, signed_by=wanted)]
    valid = sum(result.valid for result in found)
    lines = [f"{'valid' if result.valid else 'void'}  {result.reason or result.path}" for result in found]
    fields = ("path", "valid", "reason", "signed_by")
    listed = [{name: getattr(result, name) for name in fields} for result in found]
    data = {"valid": valid, "void": len(found) - valid, "bundles": listed}
    emit(as_json, data, "\n".join([*lines, f"{valid} valid, {len(found) - valid} void"]))
    raise typer.Exit(0 if valid == len(found) else 1)


@app.command("sign")
def sign(
    bundles: Bundles,
    key: Annotated[Path, typer.Option("--key", metavar="FILE", help="An Ed25519 private key; gate key makes one.")],
    as_json: AsJson = False,
) -> None:
    """Sign the certificates of bundles, so that others can see who ran the gate.

    Example: palestra gate sign envs --key gate.pem
    """
    from palestra.gate.certificate import sign as sign_bundle

    made = [path for bundle in bundles for path in sign_bundle(bundle, key)]
    emit(as_json, {"signed": made}, f"{len(made)} signed")


@app.command("key")
def make_key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to keep the private key; FILE.pub is public.")],
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys for gate sign and gate verify --signed-by. A key that exists is never replaced.

    Example: palestra gate key gate.pem
    """
    from palestra.gate import signature

    public = signature.make_key(file)
    emit(
        as_json, {"private": str(file), "public": f"{file}.pub", "public_key": public}, f"{file}, {file}.pub: {public}"
    )
