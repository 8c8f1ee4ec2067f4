"""palestra gate …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palestra.cli.common import AsJson, emit

app = typer.Typer(help="Admit environments.", no_args_is_help=True, rich_markup_mode=None)
Bundles = Annotated[list[Path], typer.Argument(metavar="BUNDLE", help="Bundles, or folders of bundles.")]


@app.command("check")
def check(
    bundles: Bundles,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the gate.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check bundles and write a certificate into each that passes; exit 1 when one is refused, 2 when the gate failed.

    Example: palestra gate check envs
    """
    from palestra.cli.progress import progress
    from palestra.config import load_config
    from palestra.gate import GateConfig
    from palestra.gate import check as check_bundles

    config = load_config(GateConfig, overrides=settings or ())
    with progress("gate") as step:
        reports = check_bundles(bundles, config=config, progress=step)
    counts = {verdict: sum(r.verdict == verdict for r in reports) for verdict in ("admitted", "refused", "void")}
    lines = [f"{r.verdict}  {r.id}{r.reason and ': '}{r.reason}" for r in reports]
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    emit(as_json, {**counts, "bundles": [report.plain() for report in reports]}, "\n".join(lines))
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
