"""Forge tasks from packages: study each function, write its bundle, and keep those that the gate admits."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from palestra.errors import ForgeError
from palestra.forge.code.find import Source
from palestra.forge.code.inputs import Plan
from palestra.forge.code.package import Package, find_package
from palestra.forge.code.plans import plan_functions
from palestra.forge.code.record import Refused, importable
from palestra.forge.code.run import MARK, fresh_folder
from palestra.forge.code.study import Study, study
from palestra.forge.code.task_bundles import TaskBundle, implement, repair, write_task
from palestra.gate.config import GateConfig
from palestra.gate.novelty import Prints
from palestra.gate.run import check_bundle
from palestra.verify.forkers import Forkers
from palestra.verify.parallel import Progress, each

MAKERS: dict[str, Callable[[Study, int], TaskBundle]] = {"implement": implement, "repair": repair}
"""Kinds of task that a studied function can become."""


@dataclass(frozen=True, slots=True)
class ForgedTask:
    """One admitted task. ``killed`` of ``mutants`` of the gold are told by its hidden calls; ``alike`` more behaved as
    the gold in every call made."""

    id: str
    kind: str
    symbol: str
    package: str
    version: str
    hidden: int
    killed: int
    mutants: int
    alike: int
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What came of a forge of tasks.

    seen, candidates  public functions; those of which calls can be made
    admitted   tasks that the gate admitted; their bundles hold its certificates
    refused    symbol -> why no task came of it
    strength   share of all admitted tasks' mutants that their hidden calls tell; None without any
    """

    out: str
    kind: str
    seen: int
    candidates: int
    admitted: tuple[ForgedTask, ...]
    refused: dict[str, str]
    strength: float | None
    seed: int
    seconds: float = field(compare=False)

    def reasons(self) -> dict[str, int]:
        """reason -> how many functions, most frequent first; of the gate's reasons the check alone."""
        return dict(Counter(map(_short, self.refused.values())).most_common())


def _short(reason: str) -> str:
    """A reason without what it says of one bundle."""
    return ":".join(reason.split(":")[:2]) if reason.startswith("gate") else reason


async def forge_tasks(
    packages: Sequence[str],
    out: Path,
    kind: str,
    *,
    limit: int | None = None,
    seed: int = 0,
    config: GateConfig | None = None,
    progress: Progress | None = None,
) -> TaskReport:
    """Forge tasks of ``kind`` from the source of ``packages`` (installed names, or paths) into the folder ``out``.

    limit   tasks per package at most, in order of symbol
    seed    fixes inputs, mutants and choice: the same arguments and source give the same bundles, byte for byte
    config  of the gate, which every bundle passes before it is kept

    ``out`` appears whole or not at all; an earlier forge's folder is replaced, any other folder is refused.
    Raises ForgeError (no such package, or no task came of any), SandboxError and OutputError."""
    start = time.perf_counter()
    found = [find_package(name) for name in dict.fromkeys(packages)]
    with fresh_folder(out) as folder:
        async with Forkers(2) as forkers:
            forge = _Forge(kind, folder, seed, limit, config or GateConfig(), forkers, Prints([]))
            for package in found:
                await forge.package(package, progress)
        if not forge.made:
            counted = Counter(map(_short, forge.refused.values())).most_common(3)
            listed = "; ".join(f"{count} × {reason}" for reason, count in counted)
            raise ForgeError(f"no task of kind {kind!r} came of {', '.join(packages)} ({listed}); name another package")
        made = tuple(sorted(forge.made, key=lambda task: task.id))
        mutants = sum(task.mutants for task in made)
        strength = sum(task.killed for task in made) / mutants if mutants else None
        seconds = time.perf_counter() - start
        refused = dict(sorted(forge.refused.items()))
        report = TaskReport(str(out), kind, forge.seen, forge.candidates, made, refused, strength, seed, seconds)
        (folder / MARK).write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    return report


@dataclass
class _Forge:
    kind: str
    folder: Path
    seed: int
    limit: int | None
    config: GateConfig
    forkers: Forkers
    prints: Prints
    made: list[ForgedTask] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    seen: int = 0
    candidates: int = 0

    async def package(self, package: Package, progress: Progress | None) -> None:
        entries, source = await importable(package, pure=False), Source(package)
        plans, without = plan_functions(source)
        self.seen += len(plans) + len(without)
        self.candidates += len(plans)
        self.refused |= without
        before = len(self.made)

        async def one(plan: Plan) -> str:
            symbol = plan.function.symbol
            if self.limit is not None and len(self.made) - before >= self.limit:
                return f"{symbol}: left out by the limit"
            try:
                return await self.task(package, entries, source, plan)
            except Refused as reason:
                self.refused[symbol] = str(reason)
                return f"{symbol}: refused: {reason}"

        # With a limit one at a time, so that which functions fill it does not depend on which is quicker.
        await each(plans, one, at_once=1 if self.limit is not None else None, progress=progress)

    async def task(self, package: Package, entries: tuple[str, ...], source: Source, plan: Plan) -> str:
        start = time.perf_counter()
        studied = await study(package, entries, source, plan, self.seed, self.forkers)
        bundle = MAKERS[self.kind](studied, self.seed)
        path = self.folder / bundle.id
        write_task(path, bundle)
        report = await check_bundle(path, self.config, self.prints)
        if not report.admitted:
            shutil.rmtree(path)
            raise Refused(f"gate: {report.reason}")
        self.prints.add(path)
        suite = bundle.suite
        self.made.append(
            ForgedTask(
                bundle.id,
                bundle.kind,
                plan.function.symbol,
                package.name,
                package.version,
                len(suite.hidden),
                suite.killed,
                suite.mutants,
                suite.alike,
                time.perf_counter() - start,
            )
        )
        return f"{bundle.id}: admitted"
