"""Make the environment of one function: run its calls in a sandbox, keep what is fit to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from palestra.envs.bundle import FEWEST_CASES, Case
from palestra.envs.splits import split_of
from palestra.errors import ForgeError
from palestra.forge.code.budget import Budget
from palestra.forge.code.bundles import Forged
from palestra.forge.code.choose import choose
from palestra.forge.code.inputs import Plan
from palestra.forge.code.package import Package, entry_of
from palestra.verify.calls import CallRun, Result, Target, run_calls

MOST_DEPENDENCIES = 16
PROBE = 240
MOST_CALLS = 3.0
"""Calls made per problem wanted, at most."""
FEWEST_FIT = 0.08
"""A function is given up when fewer of the first PROBE calls than this share are fit to ask."""


class Refused(Exception):
    """Why no environment can be made of a function: an entry of the report, never an error of the forge."""


class Lacking(Refused):
    """The import asks for a module that the sandbox does not show."""

    def __init__(self, told: object, name: str) -> None:
        super().__init__(told)
        self.name = name


@dataclass(frozen=True, slots=True)
class Recorded:
    """Argument lists and what the original gave for each; the files of the package that it used."""

    pairs: tuple[tuple[str, Result], ...]
    files: frozenset[str]

    @property
    def mean_s(self) -> float:
        """CPU seconds of a call on average."""
        return sum(result.seconds for _, result in self.pairs) / max(1, len(self.pairs))

    def __add__(self, other: Recorded) -> Recorded:
        return Recorded(self.pairs + other.pairs, self.files | other.files)


async def forge_function(package: Package, entries: tuple[str, ...], plan: Plan, seed: int, budget: Budget) -> Forged:
    """The environment of one function; ``entries`` of the package's root are shown to the sandbox.

    Raises Refused with the reason where none can be made, and SandboxError."""
    function = plan.function
    inputs = plan.calls(seed, budget.prompt_bytes, len(f"list({function.symbol}())"))
    target = Target(package.root, function.module, function.path, entries)
    first = list(islice(inputs, PROBE))
    if not first:
        raise Refused(f"no call of it fits in {budget.prompt_bytes} bytes")
    seen = await _record(target, first, budget)
    _refuse_unfit(seen, budget)
    # How many calls it takes to have one problem: not every call is fit, and not every fit one is chosen.
    share = max(len(choose(_cases(plan, seen, budget)[1], PROBE, seed)) / len(first), 1 / MOST_CALLS)
    more = list(islice(inputs, max(0, int(budget.cases * min(1.15 / share, MOST_CALLS)) - len(first))))
    if more:
        seen += await _record(target, more, budget)
    iterates, cases = _cases(plan, seen, budget)
    chosen = choose(cases, budget.cases, seed)
    if len(chosen) < FEWEST_CASES:
        spread = "most of its calls have one outcome, or return their first argument"
        why = spread if len(cases) >= FEWEST_CASES else "its inputs allow no more"
        raise Refused(f"gives fewer than {FEWEST_CASES} problems: {why}")
    return Forged(package, function, iterates, tuple(chosen), tuple(sorted(seen.files)), seed, budget)


async def importable(package: Package, *, pure: bool = True) -> tuple[str, ...]:
    """The entries of the package's root that importing it needs: its own, and those of the packages that it imports.

    pure  whether importing it may do nothing but define things; else what it does inside its sandbox is no matter
    Raises ForgeError where importing it fails, prints, or is not pure though it must be."""
    entries = [package.entry]
    while True:
        target = Target(package.root, package.name, "", tuple(entries))
        try:
            run = await run_calls(target, [])
            (check_run if pure else check_words)(run, has_args=False)
        except Lacking as lack:
            found = entry_of(package.root, lack.name.partition(".")[0])
            if found is not None and found not in entries and len(entries) <= MOST_DEPENDENCIES:
                entries.append(found)
                continue
            raise ForgeError(f"package {package.name!r}: {lack}; install that beside it") from None
        except Refused as reason:
            raise ForgeError(
                f"package {package.name!r}: {reason}; the import of a package to forge from must do nothing but define"
            ) from None
        return tuple(entries)


async def _record(target: Target, args: Sequence[str], budget: Budget) -> Recorded:
    run = await run_calls(target, args, call_s=budget.call_s)
    check_run(run, has_args=bool(args))
    return Recorded(tuple(zip(args, run.results, strict=True)), frozenset(run.files))


def check_run(run: CallRun, *, has_args: bool) -> None:
    """Raises Refused where the import failed or had an effect, or something was printed."""
    at_import = [event for call, event, _ in run.effects if call == "import"]
    if at_import and not run.missing and not run.refused:
        raise Refused(f"its import has an effect outside the package ({at_import[0]})")
    check_words(run, has_args=has_args)


def check_words(run: CallRun, *, has_args: bool) -> None:
    """Raises Refused where the import failed, or something was printed."""
    if run.missing:
        raise Lacking(run.refused, name=run.missing)
    if run.refused:
        raise Refused(run.refused)
    if run.printed:
        what = "it" if has_args else "its import"
        raise Refused(f"{what} prints {run.printed[:40].decode(errors='replace')!r}")


def _cases(plan: Plan, seen: Recorded, budget: Budget) -> tuple[bool, list[tuple[Case, bool]]]:
    """Whether results are iterators (as most are); and for each call that is fit to ask, a case, and whether its
    outcome is its first argument."""
    fit = [(args, result) for args, result in seen.pairs if budget.why_unfit(result) is None]
    iterates = sum(result.iterates for _, result in fit) * 2 > len(fit)
    symbol, examples = plan.function.symbol, plan.example_calls()
    cases = []
    for args, result in fit:
        if result.iterates == iterates:
            call = f"list({symbol}({args}))" if iterates else f"{symbol}({args})"
            source = "doctest" if args in examples else "generated"
            # Both are written by ``show``, and a literal that a comma follows is whole.
            echo = f"{args}, ".startswith(f"{result.value}, ")
            cases.append((Case(call, result.value or "", split_of(call), source), echo))
    return iterates, cases


def _refuse_unfit(seen: Recorded, budget: Budget) -> None:
    """Raises Refused where too few calls are fit to ask, where any changes its arguments, or where they are slow."""
    unfit = Counter(filter(None, (budget.why_unfit(result) for _, result in seen.pairs)))
    if any(result.mutates for _, result in seen.pairs):
        raise Refused("changes its arguments")
    if len(seen.pairs) - unfit.total() < len(seen.pairs) * FEWEST_FIT:
        raise Refused(f"its calls are unfit: {unfit.most_common(1)[0][0]}")
    if seen.mean_s > budget.mean_call_s:
        raise Refused(f"its calls take more than {budget.mean_call_s} s of CPU on average")
