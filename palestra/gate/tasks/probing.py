"""Cheats, run for real: each hands in its works, and none may score more than the best useless work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from palestra.gate.config import LEVELS, GateConfig
from palestra.gate.probes import Probe
from palestra.gate.probes import probes as every_probe
from palestra.gate.subject import Check
from palestra.gate.tasks.workbench import Workbench, told
from palestra.types import Score
from palestra.verify.parallel import each

if TYPE_CHECKING:
    from palestra.gate.tasks.checks import Found

Outcome = Literal["blocked", "leaked", "not applicable"]


@dataclass(frozen=True, slots=True)
class Attacked:
    """What came of one probe: ``told`` is the verdict on the work that went furthest."""

    probe: Probe
    outcome: Outcome
    told: str
    value: float

    def plain(self) -> dict[str, Any]:
        probe = self.probe
        named = {"name": probe.name, "kind": probe.kind, "defence": probe.defence, "source": probe.source}
        return {**named, "outcome": self.outcome, "verdict": self.told, "score": self.value}


async def attack(bench: Workbench, found: Found, probe: Probe) -> Attacked:
    """Grade every work of ``probe``, until one gets through."""
    works = probe.attack(found.ground) if probe.needs in found.ground.needs else []
    if not works:
        return Attacked(probe, "not applicable", "", 0.0)
    value, words = 0.0, ""
    for work in works:
        score = await bench.grade(work)
        got = score.value if isinstance(score, Score) else 0.0
        if got >= value:
            value, words = got, told(score)
        if value > found.worst:
            return Attacked(probe, "leaked", words, value)
    return Attacked(probe, "blocked", words, value)


async def attack_all(bench: Workbench, found: Found) -> list[Attacked]:
    return await each(every_probe(), lambda probe: attack(bench, found, probe))


async def probes(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """Every cheat that applies is blocked."""
    if not LEVELS[config.level].probes:
        return Check("probes", True, f"not run at level {config.level}")
    results = await attack_all(bench, found)
    leaked = [one for one in results if one.outcome == "leaked"]
    run = sum(one.outcome != "not applicable" for one in results)
    facts = {"run": run, "blocked": run - len(leaked), "leaked": [one.plain() for one in leaked]}
    if leaked:
        first = leaked[0]
        told_ = (
            f"{len(leaked)} of {run} cheats get through, first {first.probe.name} ({first.probe.kind}), which scores "
            f"{first.value:g}; what would stop it: {first.probe.defence}"
        )
        return Check("probes", False, told_, facts=facts)
    return Check("probes", True, f"{run} cheats blocked", facts=facts)
