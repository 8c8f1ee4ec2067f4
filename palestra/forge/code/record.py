"""Make the environment of one function: run its calls in a sandbox, keep what is fit to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from palestra.envs.bundle import Case
from palestra.envs.splits import split_of
from palestra.forge.code.budget import Budget
from palestra.forge.code.bundles import Forged
from palestra.forge.code.choose import choose
from palestra.forge.code.inputs import Plan
from palestra.forge.code.package import Package
from palestra.verify.calls import Result, Target, run_calls
from palestra.verify.inside.literals import read_first, show

FEWEST = 200
PROBE = 240
FEWEST_FIT = 0.08
"""A function is given up when fewer of the first PROBE calls than this share are fit to ask."""


class Refused(Exception):
    """Why no environment can be made of a function: an entry of the report, never an error of the forge."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Argument lists and what the original gave for each; the files of the package that it used."""

    pairs: tuple[tuple[str, Result], ...]
    files: frozenset[str]

    def __add__(self, other: Recorded) -> Recorded:
        return Recorded(self.pairs + other.pairs, self.files | other.files)


async def forge_function(package: Package, plan: Plan, seed: int, budget: Budget) -> Forged:
    """The environment of one function. Raises Refused with the reason where none can be made, and SandboxError."""
    function = plan.function
    inputs = plan.calls(seed, budget.prompt_bytes, len(f"list({function.symbol}())"))
    target = Target(package.root, function.module, function.path, (package.entry,))
    first = list(islice(inputs, PROBE))
    if not first:
        raise Refused(f"no call of it fits in {budget.prompt_bytes} bytes")
    seen = await _record(target, first, budget)
    fit = sum(budget.why_unfit(result) is None for _, result in seen.pairs) / len(first)
    if fit < FEWEST_FIT:
        raise Refused(_commonest(seen, budget))
    more = list(islice(inputs, int(min(budget.cases / fit * 1.2, budget.cases * 3)) - len(first)))
    if more:
        seen += await _record(target, more, budget)
    iterates, cases = _cases(plan, seen, budget)
    chosen = choose(cases, budget.cases, seed)
    if len(chosen) < FEWEST:
        raise Refused(_too_few(len(cases), chosen))
    return Forged(package, function, iterates, tuple(chosen), tuple(sorted(seen.files)), seed, budget)


async def _record(target: Target, args: Sequence[str], budget: Budget) -> Recorded:
    run = await run_calls(target, args, call_s=budget.call_s)
    if run.refused:
        raise Refused(run.refused)
    if run.printed:
        raise Refused("it, or its import, prints")
    at_import = [event for call, event, _ in run.effects if call == "import"]
    if at_import:
        raise Refused(f"its import does more than define things: {at_import[0]}")
    return Recorded(tuple(zip(args, run.results, strict=True)), frozenset(run.files))


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
            echo = bool(args) and show(read_first(args)) == result.value
            cases.append((Case(call, result.value or "", split_of(call), source), echo))
    return iterates, cases


def _commonest(seen: Recorded, budget: Budget) -> str:
    reasons = Counter(filter(None, (budget.why_unfit(result) for _, result in seen.pairs)))
    reason, count = reasons.most_common(1)[0]
    return f"{count} of {len(seen.pairs)} tried calls are unfit: {reason}"


def _too_few(found: int, chosen: Sequence[Case]) -> str:
    told = f"{len(chosen)} problems, at least {FEWEST} are needed"
    if found >= FEWEST:
        return f"{told}: of {found} calls, most have one outcome, or return their first argument"
    return f"{told}: its inputs allow no more"
