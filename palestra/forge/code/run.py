"""The forge: packages in, bundles out. Everything of a package that runs, runs in a sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from palestra.envs.bundle import Case
from palestra.envs.splits import split_of
from palestra.errors import OutputError, boundary
from palestra.forge.code.bundles import Forged, write_bundle
from palestra.forge.code.choose import choose
from palestra.forge.code.find import Source
from palestra.forge.code.inputs import Plan
from palestra.forge.code.package import Package, find_package
from palestra.forge.code.plans import plan_functions
from palestra.verify.calls import CallRun, Result, Target, run_calls

MARK = "forge.json"
FEWEST = 200
PROBE = 240
Progress = Callable[[int, int, str], None]
"""Called with (functions done, functions in all, what was just done)."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a forged problem may be.

    cases         problems wanted of each function; fewer than FEWEST distinct ones and the function is refused
    prompt_bytes  UTF-8 bytes of a call as text, at most
    answer_bytes  UTF-8 bytes of the literal of its result, at most
    call_s        seconds that one call may take
    """

    cases: int = 3000
    prompt_bytes: int = 48
    answer_bytes: int = 32
    call_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ForgedFunction:
    symbol: str
    package: str
    version: str
    cases: int
    from_doctests: int
    outcomes: int
    seconds: float


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
        counts: dict[str, int] = {}
        for reason in self.refused.values():
            counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


class Refused(Exception):
    """Why no environment can be made of a function; caught where the report is written."""


def forge_code(
    packages: Sequence[str],
    out: Path,
    *,
    limit: int | None = None,
    seed: int = 0,
    cases: int = 3000,
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> ForgeReport:
    """Forge predict environments from the source of ``packages`` (installed names, or paths) into the folder ``out``.

    limit  functions per package at most, in order of symbol
    seed   fixes inputs and choice: the same arguments give the same bundles, byte for byte

    ``out`` appears whole or not at all; an earlier forge's folder is replaced, any other folder is refused.
    Raises ForgeError (no such package, nothing suitable in it, or it cannot be imported) and OutputError."""
    from dataclasses import replace

    return asyncio.run(
        forge_packages(
            packages, out, limit=limit, seed=seed, budget=replace(budget or Budget(), cases=cases), progress=progress
        )
    )


async def forge_packages(
    packages: Sequence[str],
    out: Path,
    *,
    limit: int | None = None,
    seed: int = 0,
    budget: Budget = Budget(),
    progress: Progress | None = None,
) -> ForgeReport:
    """``forge_code`` for a running event loop."""
    start = time.perf_counter()
    plans: list[tuple[Package, Plan]] = []
    refused: dict[str, str] = {}
    for name in dict.fromkeys(packages):
        package = find_package(name)
        made, without = plan_functions(Source(package))
        plans += [(package, plan) for plan in made]
        refused |= without
    with fresh_folder(out) as folder:
        results = await _forge_all(plans, folder, seed, budget, progress)
        for (package, plan), result in zip(plans, results, strict=True):
            if isinstance(result, str):
                refused[plan.function.symbol] = result
        forged = tuple(result for result in results if isinstance(result, ForgedFunction))
        report = ForgeReport(str(out), forged, refused, seed, budget, time.perf_counter() - start)
        (folder / MARK).write_text(json.dumps(asdict(report), indent=1) + "\n", encoding="utf-8")
    return report


async def _forge_all(
    plans: list[tuple[Package, Plan]], folder: Path, seed: int, budget: Budget, progress: Progress | None
) -> list[ForgedFunction | str]:
    slots = asyncio.Semaphore(os.cpu_count() or 1)
    finished = 0

    async def one(package: Package, plan: Plan) -> ForgedFunction | str:
        nonlocal finished
        async with slots:
            try:
                result: ForgedFunction | str = await forge_function(package, plan, folder, seed, budget)
            except Refused as reason:
                result = str(reason)
        finished += 1
        if progress:
            told = result if isinstance(result, str) else f"{result.cases} cases"
            progress(finished, len(plans), f"{plan.function.symbol}: {told}")
        return result

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(package, plan)) for package, plan in plans]
    return [task.result() for task in tasks]


async def forge_function(package: Package, plan: Plan, folder: Path, seed: int, budget: Budget) -> ForgedFunction:
    """Make the bundle of one function. Raises Refused with the reason where none can be made."""
    start = time.perf_counter()
    function = plan.function
    examples = len(plan.examples)
    prefix = len(f"list({function.symbol}())")
    inputs = plan.calls(seed, budget.prompt_bytes, prefix)
    first = list(islice(inputs, PROBE))
    if not first:
        raise Refused(f"no call of it fits in {budget.prompt_bytes} bytes")
    target = Target(package.root, function.module, function.path, (package.entry,))
    run = await run_calls(target, first, call_s=budget.call_s)
    _usable(run, function.symbol)
    pairs = list(zip(first, run.results, strict=True))
    good = sum(is_suitable(result, budget) for result in run.results)
    if good < len(first) * 0.08:
        raise Refused(_why_unsuitable(run.results, budget))
    more = list(islice(inputs, int(min(budget.cases * len(first) / good * 1.2, budget.cases * 3)) - len(first)))
    if more:
        run = await run_calls(target, more, call_s=budget.call_s)
        _usable(run, function.symbol)
        pairs += zip(more, run.results, strict=True)
    kept = [(text, result) for text, result in pairs if is_suitable(result, budget)]
    iterates = sum(result.iterates for _, result in kept) * 2 > len(kept)
    before, after = (f"list({function.symbol}(", "))") if iterates else (f"{function.symbol}(", ")")
    own = set(first[:examples])
    cases = [
        Case(
            before + text + after,
            result.value or "",
            split_of(before + text + after),
            "doctest" if text in own else "generated",
        )
        for text, result in kept
        if result.iterates == iterates
    ]
    chosen = choose(cases, lambda case: _first(case.call[len(before) : -len(after)]), budget.cases, seed)
    if len(chosen) < FEWEST:
        raise Refused(f"only few distinct calls: {len(chosen)} of the {FEWEST} needed, outcomes balanced")
    forged = Forged(
        package, function, iterates, tuple(chosen), run.files, seed, budget.prompt_bytes, budget.answer_bytes
    )
    write_bundle(folder / function.symbol, forged)
    doctests = sum(case.source == "doctest" for case in chosen)
    outcomes = len({case.expected for case in chosen})
    return ForgedFunction(
        function.symbol, package.name, package.version, len(chosen), doctests, outcomes, time.perf_counter() - start
    )


def is_suitable(result: Result, budget: Budget) -> bool:
    return result.value is not None and not result.mutates and len(result.value.encode()) <= budget.answer_bytes


def _usable(run: CallRun, symbol: str) -> None:
    if run.refused:
        raise Refused(run.refused)


def _why_unsuitable(results: Sequence[Result], budget: Budget) -> str:
    reasons: dict[str, int] = {}
    for result in results:
        if result.mutates:
            reason = "changes its arguments"
        elif result.unsuitable:
            reason = f"returns {result.unsuitable}"
        elif result.error:
            reason = f"raises {result.error}"
        elif len((result.value or "").encode()) > budget.answer_bytes:
            reason = f"answers are longer than {budget.answer_bytes} bytes"
        else:
            continue
        reasons[reason] = reasons.get(reason, 0) + 1
    reason, count = max(reasons.items(), key=lambda pair: pair[1])
    return f"{count} of {len(results)} tried calls: {reason}"


def _first(arguments: str) -> str:
    """The text of the first argument, up to the first comma at depth 0 outside strings."""
    depth, quote, escaped = 0, "", False
    for at, char in enumerate(arguments):
        if quote:
            escaped = char == "\\" and not escaped
            if char == quote and arguments[at - 1 : at] != "\\":
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "[({":
            depth += 1
        elif char in "])}":
            depth -= 1
        elif char == "," and depth == 0:
            return arguments[:at]
    return arguments


@contextmanager
def fresh_folder(out: Path) -> Iterator[Path]:
    """A new folder beside ``out`` that takes its place when the block ends well, and vanishes when it does not.

    Raises OutputError where ``out`` exists and is not a forge's, or where the file system refuses."""
    out = out.absolute()
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out}: exists and was not written by palestra forge; name another folder, or remove it")
    partial = out.parent / f".{out.name}.partial-{os.getpid()}"
    old = out.parent / f".{out.name}.old-{os.getpid()}"
    try:
        with boundary(OutputError, f"{out}: the forge's output cannot be written"):
            partial.mkdir(parents=True)
        yield partial
        with boundary(OutputError, f"{out}: the forge's output cannot be put in place"):
            if out.exists():
                out.rename(old)
            partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
