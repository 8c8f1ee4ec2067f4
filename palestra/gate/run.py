"""The gate: checks in order, cheap ones first; a certificate for what passes all, a reason for what does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from palestra.envs.bundle import CERTIFICATE, find_bundles
from palestra.errors import BundleError, SandboxError
from palestra.gate.certificate import certificate, write_certificate
from palestra.gate.config import GateConfig
from palestra.gate.replay import REPLAYED, replay
from palestra.gate.static import STATIC
from palestra.gate.subject import Check, Subject
from palestra.verify.parallel import Progress, each

Verdict = Literal["admitted", "refused", "void"]


@dataclass(frozen=True, slots=True)
class GateReport:
    """What the gate says of one bundle.

    verdict  "admitted" (a certificate was written), "refused" (``reason`` says what to change), or "void": the gate
             itself could not work (``reason`` says why), which is held against nobody
    checks   those that ran, in order
    """

    path: str
    id: str
    verdict: Verdict
    reason: str
    bundle_sha256: str
    checks: tuple[Check, ...]
    seconds: float = field(default=0.0, compare=False)

    @property
    def admitted(self) -> bool:
        return self.verdict == "admitted"

    def plain(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "id": self.id,
            "verdict": self.verdict,
            "reason": self.reason,
            "bundle_sha256": self.bundle_sha256,
            "checks": [check.plain() for check in self.checks],
            "seconds": round(self.seconds, 3),
        }


def check(
    paths: Sequence[Path], *, config: GateConfig | None = None, progress: Progress | None = None
) -> list[GateReport]:
    """Check every bundle in ``paths`` (bundles, or folders of them), and certify those that pass.

    A bundle that is refused loses the certificate that it had. Raises BundleError where a path holds no bundle."""
    return asyncio.run(check_bundles(paths, config=config, progress=progress))


async def check_bundles(
    paths: Sequence[Path], *, config: GateConfig | None = None, progress: Progress | None = None
) -> list[GateReport]:
    """``check`` for a running event loop."""
    return await each(
        find_bundles(paths),
        lambda path: check_bundle(path, config or GateConfig()),
        progress=progress,
        told=lambda report: f"{report.id}: {report.verdict}{report.reason and ': '}{report.reason}",
    )


async def check_bundle(path: Path, config: GateConfig) -> GateReport:
    """Check one bundle; write its certificate, or take away the one that it no longer deserves."""
    start = time.perf_counter()
    checks: list[Check] = []
    try:
        subject = Subject(path)
        checks += _static(subject, config)
        if all(done.passed for done in checks):
            checks += await _replayed(subject, config)
    except BundleError as error:
        (path / CERTIFICATE).unlink(missing_ok=True)
        return GateReport(str(path), path.name, "refused", str(error), "", tuple(checks), time.perf_counter() - start)
    except SandboxError as error:
        return GateReport(str(path), path.name, "void", str(error), "", tuple(checks), time.perf_counter() - start)
    failed = next((done for done in checks if not done.passed), None)
    reason = f"{failed.name}: {failed.evidence}" if failed else ""
    if failed:
        (path / CERTIFICATE).unlink(missing_ok=True)
    else:
        write_certificate(path, certificate(subject.sha256, checks, config))
    verdict: Verdict = "refused" if failed else "admitted"
    seconds = time.perf_counter() - start
    return GateReport(str(path), subject.facts.symbol, verdict, reason, subject.sha256, tuple(checks), seconds)


def _static(subject: Subject, config: GateConfig) -> list[Check]:
    """The cheap checks, up to the first that fails: later ones stand on what earlier ones found."""
    done: list[Check] = []
    for examine in STATIC:
        start = time.perf_counter()
        done.append(replace(examine(subject, config), seconds=time.perf_counter() - start))
        if not done[-1].passed:
            break
    return done


async def _replayed(subject: Subject, config: GateConfig) -> list[Check]:
    """The checks that stand on running the original, up to the first that fails. The time of running is the first's."""
    start = time.perf_counter()
    seen = await replay(subject, config)
    done: list[Check] = []
    for examine in REPLAYED:
        done.append(replace(await examine(subject, config, seen), seconds=time.perf_counter() - start))
        start = time.perf_counter()
        if not done[-1].passed:
            break
    return done
