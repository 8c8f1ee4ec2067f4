"""The certificate: what was checked and found, bound to the bundle's bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palestra import __version__
from palestra.envs.bundle import CERTIFICATE, find_bundles, read_certificate
from palestra.errors import GateError, OutputError, boundary
from palestra.gate.canonical import NotCanonical, canonical, parse_canonical
from palestra.gate.config import GateConfig
from palestra.gate.signature import signed, signer
from palestra.gate.subject import Check

SCHEMA = 1
MEASURED = (
    "gold",
    "null",
    "constant",
    "echo",
    "determinism",
    "limits",
    "mutants",
    "probes",
    "difficulty",
    "novelty",
)
"""Checks whose numbers the certificate holds under their own names."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the certificate of a bundle is about its present bytes; ``reason`` where it is not. ``signed_by``: the
    public key whose signature it bears."""

    path: str
    valid: bool
    reason: str
    certificate: dict[str, Any] | None
    signed_by: str | None = None


def certificate(sha256: str, checks: Sequence[Check], config: GateConfig) -> dict[str, Any]:
    """The certificate of a bundle whose checks all passed. What was not measured is null."""
    by_name = {check.name: dict(check.facts) for check in checks}
    return {
        "schema": SCHEMA,
        "bundle_sha256": sha256,
        "palestra_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": config.model_dump(),
        "checks": [check.plain() for check in checks],
        **{name: by_name.get(name) or None for name in MEASURED},
    }


def write_certificate(path: Path, data: dict[str, Any]) -> None:
    """Put ``data`` into the bundle as canonical JSON, whole or not at all. Raises OutputError."""
    text = canonical(data) + b"\n"
    # Beside the bundle, not in it: a leftover of a crash must not change the bundle's content.
    partial = path.parent / f".{path.name}.{CERTIFICATE}.{os.getpid()}"
    with boundary(OutputError, f"{path}: the certificate cannot be written"):
        try:
            partial.write_bytes(text)
            partial.replace(path / CERTIFICATE)
        finally:
            partial.unlink(missing_ok=True)


def verify(path: Path, *, signed_by: str | None = None) -> list[Verification]:
    """Re-derive the content hash of the bundle at ``path``, or of each bundle in that folder, and compare it with the
    certificate's, which must be canonical JSON still; a signature must hold where there is one, and be that of the
    public key ``signed_by`` where one is given. Raises BundleError where there is no bundle."""
    return [_verified(bundle, signed_by) for bundle in find_bundles([path])]


def _verified(path: Path, signed_by: str | None) -> Verification:
    try:
        found = read_certificate(path)
        parse_canonical((path / CERTIFICATE).read_bytes())
        by = signer(found)
        if signed_by is not None and by != signed_by:
            told = "is signed by nobody" if by is None else f"is signed by another key, {by}"
            raise GateError(f"{path}: its certificate {told}; palestra gate sign signs it")
        return Verification(str(path), True, "", found, by)
    except NotCanonical as error:
        return Verification(str(path), False, f"{path / CERTIFICATE}: {error}; run: palestra gate check {path}", None)
    except GateError as error:
        words = str(error) if str(path) in str(error) else f"{path}: {error}"
        return Verification(str(path), False, words, None)


def sign(path: Path, key: Path) -> list[str]:
    """Sign the certificate of the bundle at ``path``, or of each bundle in that folder, with the private key in file
    ``key``; the paths. Raises GateError where one has no valid certificate: then none is signed."""
    bundles = find_bundles([path])
    made = [signed(read_certificate(bundle), key) for bundle in bundles]
    for bundle, data in zip(bundles, made, strict=True):
        write_certificate(bundle, data)
    return [str(bundle) for bundle in bundles]
