"""The gate: checks in order, cheap ones first; a certificate for what passes all, a reason for what does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from palestra.envs.bundle import CERTIFICATE, PredictFacts, find_bundles, read_facts
from palestra.envs.task_facts import TaskFacts
from palestra.errors import BundleError, SandboxError
from palestra.gate.certificate import certificate, write_certificate
from palestra.gate.config import GateConfig
from palestra.gate.novelty import Prints, novelty
from palestra.gate.replay import REPLAYED, replay
from palestra.gate.static import STATIC
from palestra.gate.subject import Check, Subject
from palestra.gate.tasks.checks import CHECKS, Found
from palestra.gate.tasks.workbench import Workbench
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
    kind: str
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
            "kind": self.kind,
            "verdict": self.verdict,
            "reason": self.reason,
            "bundle_sha256": self.bundle_sha256,
            "checks": [{**check.plain(), "facts": dict(check.facts)} for check in self.checks],
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
    config, found = config or GateConfig(), find_bundles(paths)
    prints = Prints(found) if config.level != "quick" else None
    return await each(
        found,
        lambda path: check_bundle(path, config, prints),
        progress=progress,
        told=lambda report: f"{report.id}: {report.verdict}{report.reason and ': '}{report.reason}",
    )


async def check_bundle(path: Path, config: GateConfig, prints: Prints | None = None) -> GateReport:
    """Check one bundle; write its certificate, or take away the one that it no longer deserves. ``prints``: of the set
    that it must not repeat."""
    start = time.perf_counter()
    done: list[Check] = []
    id, kind, sha256 = path.name, "", ""
    try:
        facts = read_facts(path)
        id, kind = facts.id, facts.kind
        sha256 = await _examine(facts, path, config, done)
        if prints is not None and all(check.passed for check in done):
            done.append(_timed(novelty(path, prints, config.similar_most), time.perf_counter()))
    except BundleError as error:
        (path / CERTIFICATE).unlink(missing_ok=True)
        return GateReport(str(path), id, kind, "refused", str(error), "", tuple(done), time.perf_counter() - start)
    except SandboxError as error:
        return GateReport(str(path), id, kind, "void", str(error), "", tuple(done), time.perf_counter() - start)
    failed = next((check for check in done if not check.passed), None)
    reason = f"{failed.name}: {failed.evidence}" if failed else ""
    if failed:
        (path / CERTIFICATE).unlink(missing_ok=True)
    else:
        write_certificate(path, certificate(sha256, done, config))
    verdict: Verdict = "refused" if failed else "admitted"
    return GateReport(str(path), id, kind, verdict, reason, sha256, tuple(done), time.perf_counter() - start)


async def _examine(facts: PredictFacts | TaskFacts, path: Path, config: GateConfig, done: list[Check]) -> str:
    """Add to ``done`` every check up to the first that fails; the content hash."""
    if isinstance(facts, TaskFacts):
        return await _of_task(facts, config, done)
    subject = Subject(path)
    for examine in STATIC:
        start = time.perf_counter()
        done.append(_timed(examine(subject, config), start))
        if not done[-1].passed:
            return subject.sha256
    start = time.perf_counter()  # the time of running is the first check's
    seen = await replay(subject, config)
    for examine_run in REPLAYED:
        done.append(_timed(await examine_run(subject, config, seen), start))
        start = time.perf_counter()
        if not done[-1].passed:
            break
    return subject.sha256


async def _of_task(facts: TaskFacts, config: GateConfig, done: list[Check]) -> str:
    async with Workbench(facts) as bench:
        found = Found()
        for examine in CHECKS:
            start = time.perf_counter()
            done.append(_timed(await examine(bench, config, found), start))
            if not done[-1].passed:
                break
        return bench.sha256


def _timed(check: Check, start: float) -> Check:
    return replace(check, seconds=time.perf_counter() - start)
