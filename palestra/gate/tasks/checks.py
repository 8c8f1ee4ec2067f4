"""The checks of a task bundle, cheap ones first; each stands on what the ones before it found."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from palestra.envs.graders.calls import CallsSpec
from palestra.envs.graders.command import CommandSpec
from palestra.gate.config import LEVELS, GateConfig
from palestra.gate.functions import body_of, definitions
from palestra.gate.leaks import Hidden, scan, visible_of
from palestra.gate.probes import Ground
from palestra.gate.probes.base import Needs
from palestra.gate.subject import Check
from palestra.gate.surroundings import clock_shifter, surroundings
from palestra.gate.tasks.difficulty import difficulty
from palestra.gate.tasks.mutation import mutants
from palestra.gate.tasks.probing import probes
from palestra.gate.tasks.stubs import works
from palestra.gate.tasks.workbench import Files, Solved, Workbench, passes, told
from palestra.types import Score

FEWEST_WORDS = 5
HASTE, LEAST_CALL_S, LEAST_S = 20.0, 0.2, 1.0
"""A wrong work may take HASTE times as long to grade as the gold, and at least these seconds."""


@dataclass
class Found:
    """What earlier checks found: the gold's work, what the best useless work scores."""

    gold: Files = field(default_factory=dict)
    ground: Ground = field(default_factory=lambda: Ground({}, {}, frozenset()))
    solved: list[Solved] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    seconds: float = 0.0  # of grading the gold
    worst: float = 0.0


Examine = Callable[[Workbench, GateConfig, Found], Awaitable[Check]]


async def files(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """The layout is whole, and the grader can be made: raises BundleError naming file and line where it cannot."""
    bench.grader()
    hidden = len(bench.facts.spec.hidden(bench.facts.tests))
    kind = bench.facts.metadata.grader.get("kind", "command")
    return Check(
        "files", True, f"grader {kind}, {hidden} hidden values, {len(bench.facts.image.files)} files to start with"
    )


async def instruction(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """It says something, and names what is graded."""
    text, spec = bench.facts.instruction, bench.facts.spec
    if len(text.split()) < FEWEST_WORDS:
        return Check("instruction", False, f"instruction.md has {len(text.split())} words: say what is asked")
    named = [spec.symbol.rpartition(".")[2]] if isinstance(spec, CallsSpec) else []
    if not isinstance(spec, CommandSpec):
        named += [spec.artifacts[0].rpartition("/")[2]] if spec.artifacts and spec.artifacts[0] not in (".", "") else []
    missing = [name for name in named if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    if missing and not (isinstance(spec, CallsSpec) and spec.module):
        return Check("instruction", False, f"instruction.md does not name {missing[0]}, which is graded: name it")
    return Check("instruction", True, f"{len(text.split())} words, names {', '.join(named) or 'no single file'}")


async def leak(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """Nothing that the agent sees shows the gold, a hidden file or a hidden value, or where to fetch them."""
    facts = bench.facts
    seen = visible_of(facts.path)
    secret = {
        file.relative_to(facts.path).as_posix(): file.read_bytes()
        for folder in ("solution", "tests")
        for file in sorted((facts.path / folder).rglob("*"))
        if file.is_file()
    }
    public = [text.decode(errors="replace") for text in bench.start.values()]
    gold = {f"{file.name}": text for file, text in bench.sources() if file.suffix not in (".sh", ".md", ".txt")}
    if isinstance(facts.spec, CallsSpec):
        name = facts.spec.symbol.rpartition(".")[2]
        defined = list(definitions(gold.values(), name))
        gold = {f"{name} (line {one.lineno})": body_of(one) for one in defined} or gold
    values = sorted({text for text in facts.spec.hidden(facts.tests) if text not in facts.instruction})
    leaks = scan(seen, Hidden(gold, values, secret, facts.metadata.packages, public))
    if leaks:
        listed = [one.plain() for one in leaks[:20]]
        return Check("leak", False, f"{leaks[0].where}: {leaks[0].told}", facts={"leaks": listed})
    return Check("leak", True, f"{len(seen)} visible files show neither gold nor hidden values")


async def gold(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """The gold passes every time: fresh sandboxes, other hash seeds, clocks, locales and time zones, no network."""
    count = LEVELS[config.level].golds
    passed, seconds, failure = 0, [], ""
    for around in surroundings(count):
        solved = await bench.solve(around)
        started = time.perf_counter()
        score = await bench.grade(solved.files, around)
        seconds.append(time.perf_counter() - started)
        found.solved.append(solved)
        found.scores.append(told(score))
        passed += passes(score) and not solved.fault
        if not failure and (solved.fault or not passes(score)):
            failure = solved.fault or f"the gold scores {told(score)} (run {len(seconds)}: {around})"
    facts = {"runs": count, "passes": passed}
    if failure:
        return Check(
            "gold", False, f"passes {passed} of {count} times: {failure}; mend the solution or the tests", facts=facts
        )
    found.gold, found.seconds = found.solved[0].files, min(seconds)
    found.ground = ground_of(bench, found.gold)
    if not found.ground.changed:
        return Check(
            "gold", False, "the gold changes nothing of the work: name in the grader what it writes", facts=facts
        )
    clocks = "clocks, " if clock_shifter() else ""
    return Check(
        "gold", True, f"passes {passed} of {count} times under other hash seeds, {clocks}zones and locales", facts=facts
    )


async def determinism(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """The same work gets the same verdict in every run, and the gold makes the same work."""
    differing = sorted(
        {name for solved in found.solved for name, data in solved.files.items() if found.gold.get(name) != data}
    )
    verdicts = len(set(found.scores))
    facts = {
        "runs": len(found.solved),
        "works": len(differing),
        "verdicts": verdicts,
        "clock": clock_shifter() is not None,
    }
    if verdicts > 1:
        return Check("determinism", False, f"{verdicts} different verdicts on the gold: {found.scores}", facts=facts)
    more = f"; the gold writes {differing[0]} in different ways" if differing else ""
    return Check("determinism", True, f"one verdict in {len(found.solved)} runs{more}", facts=facts)


async def limits(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """Seconds and memory of the gold, and the margin that is left."""
    making = min(solved.seconds for solved in found.solved)
    memory = max(solved.memory_mib for solved in found.solved)
    facts = {"making_s": making, "grading_s": found.seconds, "max_rss_mib": memory, "allowed_s": config.gold_s}
    if making + found.seconds > config.gold_s:
        spent = f"{making + found.seconds:.1f} s"
        told_ = f"the gold takes {spent}, at most {config.gold_s:g} s are allowed: make the task smaller"
        return Check("limits", False, told_, facts=facts)
    bench.hasten(max(LEAST_CALL_S, HASTE * found.seconds), max(LEAST_S, HASTE * found.seconds))
    told_ = f"the gold takes {making:.2f} s to make and {found.seconds:.3f} s to grade, {memory:.0f} MiB"
    return Check("limits", True, told_, facts=facts)


async def null(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """Nothing, the workspace as it was, constants, echoes and exceptions fail."""
    passed, best, runs = [], ("", 0.0), 0
    for place, (name, work) in enumerate(works(bench.facts, found.ground)):
        score = await bench.grade(work)
        runs += 1
        value = score.value if isinstance(score, Score) else 0.0
        most = config.null_most if place < 2 else config.constant_most
        if value > best[1]:
            best = (name, value)
        if value > most:
            passed.append(f"{name} scores {value:g}, at most {most:g} is allowed")
    found.worst = best[1]
    facts = {"runs": runs, "passes": len(passed), "best": best[0], "best_score": best[1]}
    if passed:
        return Check("null", False, f"{passed[0]}: add hidden cases that tell it from the gold", facts=facts)
    told_ = f"{runs} useless works fail" + (f"; the best of them, {best[0]}, scores {best[1]:g}" if best[1] else "")
    return Check("null", True, told_, facts=facts)


def ground_of(bench: Workbench, gold: Files) -> Ground:
    """What an attack on this bundle has to work with."""
    kind = bench.facts.metadata.grader.get("kind", "command")
    needs: set[Needs] = {"calls": {"python"}, "stdio": {"program"}, "answer": {"answer"}}.get(kind, {"script"})  # type: ignore[assignment]
    start = bench.start
    if "script" in needs and any(name.endswith(".py") and start.get(name) != data for name, data in gold.items()):
        needs = {*needs, "python"}
    language = getattr(bench.facts.spec, "language", "python")
    return Ground(start, gold, frozenset(needs), language, bench.facts.instruction)


CHECKS: tuple[Examine, ...] = (files, instruction, leak, gold, determinism, limits, null, mutants, probes, difficulty)
