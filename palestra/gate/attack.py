"""Run every cheat against bundles, whatever else the gate thinks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palestra.envs.bundle import find_bundles, read_facts
from palestra.envs.task_facts import TaskFacts
from palestra.errors import BundleError
from palestra.gate.config import GateConfig
from palestra.gate.tasks.checks import Found, gold, limits, null
from palestra.gate.tasks.probing import Attacked, attack_all
from palestra.gate.tasks.workbench import Workbench
from palestra.verify.parallel import Progress, each

LITERALS = "a predict bundle reads literals and runs nothing: no cheat applies"


@dataclass(frozen=True, slots=True)
class AttackReport:
    """What came of every probe on one bundle; ``reason`` says why none was run, else ""."""

    path: str
    id: str
    probes: tuple[Attacked, ...]
    reason: str = ""

    @property
    def is_unfit(self) -> bool:
        """Whether it could not be attacked though cheats may apply."""
        return bool(self.reason) and self.reason != LITERALS

    @property
    def leaked(self) -> tuple[Attacked, ...]:
        return tuple(one for one in self.probes if one.outcome == "leaked")

    def plain(self) -> dict[str, Any]:
        counts = {
            name: sum(one.outcome == name for one in self.probes) for name in ("blocked", "leaked", "not applicable")
        }
        probes = [one.plain() for one in self.probes]
        return {"path": self.path, "id": self.id, "reason": self.reason, **counts, "probes": probes}


async def attack_bundles(paths: Sequence[Path], *, progress: Progress | None = None) -> list[AttackReport]:
    """Every probe against every bundle in ``paths`` (bundles, or folders of them). Certificates are left as they are.

    Raises BundleError where a path holds no bundle, and SandboxError where no sandbox can be made."""
    return await each(
        find_bundles(paths),
        attack_bundle,
        progress=progress,
        told=lambda report: f"{report.id}: {len(report.leaked)} leaked",
    )


async def attack_bundle(path: Path) -> AttackReport:
    """Every probe against one bundle. It needs a gold that passes, to know what a right work looks like."""
    try:
        facts = read_facts(path)
        if not isinstance(facts, TaskFacts):
            return AttackReport(str(path), facts.id, (), LITERALS)
        async with Workbench(facts) as bench:
            config, found = GateConfig(level="quick"), Found()
            for examine in (gold, limits, null):
                done = await examine(bench, config, found)
                if not done.passed and examine is not null:
                    return AttackReport(str(path), facts.id, (), f"{done.name}: {done.evidence}")
            return AttackReport(str(path), facts.id, tuple(await attack_all(bench, found)))
    except BundleError as error:
        return AttackReport(str(path), path.name, (), str(error))
