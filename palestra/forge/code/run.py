"""The forge: packages in, bundles out. Everything of a package that runs, runs in a sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from palestra.errors import ForgeError, OutputError
from palestra.forge.code.budget import Budget
from palestra.forge.code.bundles import Forged, write_bundle
from palestra.forge.code.find import Source
from palestra.forge.code.inputs import Plan
from palestra.forge.code.package import Package, find_package
from palestra.forge.code.plans import plan_functions
from palestra.forge.code.record import Refused, forge_function, importable
from palestra.verify.parallel import Progress, each

MARK = "forge.json"


@dataclass(frozen=True, slots=True)
class ForgedFunction:
    """One environment that was made: its problems, how many are its docstring's own, how many distinct outcomes."""

    symbol: str
    package: str
    version: str
    cases: int
    from_doctests: int
    outcomes: int
    iterates: bool
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class ForgeReport:
    """What was forged and what was not. ``refused`` maps a symbol to the reason; ``seconds`` is wall-clock time."""

    out: str
    forged: tuple[ForgedFunction, ...]
    refused: dict[str, str]
    seed: int
    budget: Budget
    seconds: float = field(compare=False)

    def reasons(self) -> dict[str, int]:
        """reason -> how many functions, most frequent first."""
        return counted(self.refused)


def forge_code(
    packages: Sequence[str],
    out: Path,
    *,
    limit: int | None = None,
    seed: int = 0,
    cases: int | None = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> ForgeReport:
    """Forge predict environments from the source of ``packages`` (installed names, or paths) into the folder ``out``.

    limit  environments per package at most, in order of symbol
    seed   fixes inputs and choice: the same arguments and source give the same bundles, byte for byte
    cases  problems per function, in place of the budget's

    ``out`` appears whole or not at all; an earlier forge's folder is replaced, any other folder is refused.
    Raises ForgeError (no such package, or nothing in it that an environment can be made of), SandboxError and
    OutputError."""
    return asyncio.run(
        forge_packages(packages, out, limit=limit, seed=seed, cases=cases, budget=budget, progress=progress)
    )


async def forge_packages(
    packages: Sequence[str],
    out: Path,
    *,
    limit: int | None = None,
    seed: int = 0,
    cases: int | None = None,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> ForgeReport:
    """``forge_code`` for a running event loop."""
    start = time.perf_counter()
    budget = budget or Budget()
    budget = replace(budget, cases=cases) if cases else budget
    found = [find_package(name) for name in dict.fromkeys(packages)]
    with fresh_folder(out) as folder:
        forged: list[ForgedFunction] = []
        refused: dict[str, str] = {}
        for package in found:
            made, without = await _forge_package(package, folder, limit, seed, budget, progress)
            if not made:
                raise ForgeError(nothing_in(package, without))
            forged += made
            refused |= without
        report = ForgeReport(str(out), tuple(forged), refused, seed, budget, time.perf_counter() - start)
        (folder / MARK).write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    return report


async def _forge_package(
    package: Package, folder: Path, limit: int | None, seed: int, budget: Budget, progress: Progress | None
) -> tuple[list[ForgedFunction], dict[str, str]]:
    entries = await importable(package)
    plans, refused = plan_functions(Source(package))
    made: list[ForgedFunction] = []

    async def one(plan: Plan) -> str:
        symbol = plan.function.symbol
        if limit is not None and len(made) >= limit:
            return f"{symbol}: left out by the limit"
        start = time.perf_counter()
        try:
            forged = await forge_function(package, entries, plan, seed, budget)
        except Refused as reason:
            refused[symbol] = str(reason)
            return f"{symbol}: refused: {reason}"
        write_bundle(folder / symbol, forged)
        made.append(_summary(forged, time.perf_counter() - start))
        return f"{symbol}: {len(forged.cases)} problems"

    # With a limit one at a time, so that which functions fill it does not depend on which is quicker.
    await each(plans, one, at_once=1 if limit is not None else None, progress=progress)
    return sorted(made, key=lambda function: function.symbol), dict(sorted(refused.items()))


def _summary(forged: Forged, seconds: float) -> ForgedFunction:
    return ForgedFunction(
        symbol=forged.function.symbol,
        package=forged.package.name,
        version=forged.package.version,
        cases=len(forged.cases),
        from_doctests=sum(case.source == "doctest" for case in forged.cases),
        outcomes=len({case.expected for case in forged.cases}),
        iterates=forged.iterates,
        seconds=seconds,
    )


def counted(refused: dict[str, str]) -> dict[str, int]:
    """reason -> how many functions, most frequent first."""
    counts = Counter(refused.values())
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def nothing_in(package: Package, refused: dict[str, str]) -> str:
    """The sentence for a package that gave nothing, with its commonest reasons counted."""
    if not refused:
        return f"package {package.name!r}: defines no public function in Python source; name another package"
    reasons = "; ".join(f"{count} × {reason}" for reason, count in list(counted(refused).items())[:3])
    return (
        f"package {package.name!r}: no environment can be made of any of its {len(refused)} public functions "
        f"({reasons}); name another package"
    )


@contextmanager
def fresh_folder(out: Path) -> Iterator[Path]:
    """A new folder beside ``out`` that takes its place when the block ends well, and vanishes when it does not.

    Raises OutputError where ``out`` exists and is not a forge's, or where the file system refuses, full or not."""
    out = out.absolute()
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: exists and was not written by palestra forge; name another folder, or remove it")
    partial = out.parent / f".{out.name}.partial-{os.getpid()}"
    old = out.parent / f".{out.name}.old-{os.getpid()}"
    sweep(out)
    try:
        partial.mkdir(parents=True)
        yield partial
        if out.exists():
            out.rename(old)
        partial.rename(out)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise OutputError(
            f"{out}: cannot be written: {error.strerror}{where}; nothing was kept; "
            "name a folder that has room and that you may write to"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def sweep(out: Path) -> None:
    """Remove what forges into ``out`` that were killed left beside it; those of living processes stay."""
    for left in [*out.parent.glob(f".{out.name}.partial-*"), *out.parent.glob(f".{out.name}.old-*")]:
        pid = left.name.rpartition("-")[2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)
