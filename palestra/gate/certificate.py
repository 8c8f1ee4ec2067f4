"""The certificate: what was checked and found, bound to the bundle's bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palestra import __version__
from palestra.envs.bundle import CERTIFICATE, find_bundles, read_certificate
from palestra.errors import GateError, OutputError, boundary
from palestra.gate.config import GateConfig
from palestra.gate.subject import Check

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the certificate of a bundle is about its present bytes; ``reason`` where it is not."""

    path: str
    valid: bool
    reason: str
    certificate: dict[str, Any] | None


def certificate(sha256: str, checks: Sequence[Check], config: GateConfig) -> dict[str, Any]:
    """The certificate of a bundle whose checks all passed. What this gate does not measure yet is null."""
    by_name = {check.name: dict(check.facts) for check in checks}
    return {
        "schema": SCHEMA,
        "bundle_sha256": sha256,
        "palestra_version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": config.model_dump(),
        "checks": [check.plain() for check in checks],
        "gold": by_name["gold"],
        "null": by_name["null"],
        "constant": by_name["constant"],
        "echo": by_name["echo"],
        "determinism": by_name["determinism"],
        "limits": by_name["limits"],
        "mutants": None,
        "probes": None,
        "difficulty": None,
        "novelty": None,
    }


def write_certificate(path: Path, data: dict[str, Any]) -> None:
    """Put ``data`` into the bundle as canonical JSON, whole or not at all. Raises OutputError."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False) + "\n"
    # Beside the bundle, not in it: a leftover of a crash must not change the bundle's content.
    partial = path.parent / f".{path.name}.{CERTIFICATE}.{os.getpid()}"
    with boundary(OutputError, f"{path}: the certificate cannot be written"):
        try:
            partial.write_text(text, encoding="ascii")
            partial.replace(path / CERTIFICATE)
        finally:
            partial.unlink(missing_ok=True)


def verify(path: Path) -> list[Verification]:
    """Re-derive the content hash of the bundle at ``path``, or of each bundle in that folder, and compare it with the
    certificate's. Raises BundleError where there is no bundle."""
    return [_verified(bundle) for bundle in find_bundles([path])]


def _verified(path: Path) -> Verification:
    try:
        return Verification(str(path), True, "", read_certificate(path))
    except GateError as error:
        return Verification(str(path), False, str(error), None)
