"""Checks that run the original, from the bundle's own copy of its source, in fresh sandboxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from palestra.gate.config import GateConfig
from palestra.gate.subject import Check, Subject
from palestra.types import Action, Message, Score, Task, Unscored
from palestra.verify.calls import CallRun, Result, Surroundings, run_calls
from palestra.verify.inside.literals import read, same

# A POSIX rule needs no zone file, so that the sandbox need not show any.
ZONES = ("UTC", "JST-9", "EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3", "UTC")
LOCALES = ("C.UTF-8", "C.UTF-8", "C", "C.UTF-8", "POSIX")
FOLDERS = (".", ".", ".", "elsewhere", "elsewhere")


@dataclass(frozen=True, slots=True)
class Replay:
    """runs[0] made every call of the bundle in order; every other run made the drawn calls, in an order of its own.

    drawn    the drawn tasks
    results  call -> what each run that made it gave, the first run first
    """

    drawn: Sequence[Task]
    runs: Sequence[CallRun]
    results: dict[str, list[Result]]


def surroundings(process: int) -> Surroundings:
    place = process % len(ZONES)
    return Surroundings(process, ZONES[place], LOCALES[place], FOLDERS[place], home=f"/home/user{process}")


async def replay(subject: Subject, config: GateConfig) -> Replay:
    """Run the original ``config.processes`` times. Raises SandboxError where no sandbox can be made."""
    drawn = subject.draw(config.draws, config.seed)
    runs: list[CallRun] = []
    results: dict[str, list[Result]] = {}
    for process in range(config.processes):
        calls = [case.call for case in subject.cases]
        if process:
            calls = [task.messages[-1].content for task in drawn]
            Random(f"order:{config.seed}:{process}").shuffle(calls)
        run = await run_calls(
            subject.target,
            [subject.facts.arguments(call) for call in calls],
            around=surroundings(process),
            call_s=2 * config.call_s,
        )
        runs.append(run)
        for call, result in zip(calls, run.results, strict=True):
            results.setdefault(call, []).append(result)
        if run.refused or run.deaths:
            break
    return Replay(drawn, runs, results)


async def runs(subject: Subject, config: GateConfig, seen: Replay) -> Check:
    """The bundle's own source can be imported and called, and its processes live to the end."""
    refused = [run.refused for run in seen.runs if run.refused]
    if refused:
        return Check("runs", False, f"the original cannot be run: {refused[0]}; forge the bundle again")
    deaths = sum(run.deaths for run in seen.runs)
    if deaths:
        return Check("runs", False, f"{deaths} calls ended or hung the process: leave them out")
    return Check("runs", True, f"{len(seen.runs)} fresh processes ran to their end")


async def gold(subject: Subject, config: GateConfig, seen: Replay) -> Check:
    """The original's answer, re-executed, scores 1 through a real session and the real grader, on every drawn task;
    and equals the recorded one on every case."""
    passes, failure = 0, ""
    for task in seen.drawn:
        call = task.messages[-1].content
        answer = seen.results[call][0]
        score = await answered(subject, task, answer.value or "")
        if score == 1.0:
            passes += 1
        else:
            failure = failure or f"{call}: {answer.error or answer.unsuitable or 'another value than recorded'}"
    facts = {"runs": len(seen.drawn), "passes": passes}
    changed = [c.call for c in subject.cases if not agree(seen.results[c.call][0].value, c.expected)]
    if failure or changed:
        where = failure or f"{changed[0]}: another value than recorded"
        return Check(
            "gold",
            False,
            f"the original scores 1 on {passes} of {len(seen.drawn)} drawn tasks, and differs on {len(changed)} cases, "
            f"first at {where}; forge the bundle again",
            facts=facts,
        )
    told = (
        f"scores 1 on {passes} of {passes} drawn tasks, and gives the recorded value on all {len(subject.cases)} cases"
    )
    return Check("gold", True, told, facts=facts)


async def null(subject: Subject, config: GateConfig, seen: Replay) -> Check:
    """An empty answer, through a real session and the real grader."""
    scores = [await answered(subject, task, "") for task in seen.drawn]
    share = sum(score == 1.0 for score in scores) / len(scores)
    facts = {"runs": len(scores), "passes": sum(score == 1.0 for score in scores)}
    if None in scores:
        return Check("null", False, "the grader could not score an empty answer: forge the bundle again", facts=facts)
    if share > config.null_most:
        return Check("null", False, f"an empty answer scores on {share:.1%} of the drawn tasks: none may", facts=facts)
    return Check("null", True, f"an empty answer scores on {facts['passes']} of {len(scores)} drawn tasks", facts=facts)


async def answered(subject: Subject, task: Task, answer: str) -> float | None:
    """The score of ``answer``, or None when the grader gave none."""
    session = await subject.environment.open(task)
    await session.act(Action(Message("assistant", answer)))
    score: Score | Unscored = await subject.environment.grade(task, await session.outcome())
    await session.close()
    return score.value if isinstance(score, Score) else None


def agree(left: str | None, right: str | None) -> bool:
    """Whether two results are the same value: the same text, or literals that differ in the order of a dict alone."""
    return left == right or (left is not None and right is not None and same(read(left), read(right)))


async def determinism(subject: Subject, config: GateConfig, seen: Replay) -> Check:
    """Every drawn call gives the same in every process."""
    unstable = [
        call
        for call, results in seen.results.items()
        if not all(agree(results[0].value, result.value) for result in results[1:])
    ]
    facts = {"processes": len(seen.runs), "calls": len(seen.drawn), "unstable": len(unstable)}
    varied = "hash seeds, time zones, locales, folders and orders of calls"
    if unstable:
        return Check(
            "determinism",
            False,
            f"{len(unstable)} calls give different results under other {varied}, as {unstable[0]}: "
            "leave the function out, or the inputs whose result depends on them",
            facts=facts,
        )
    return Check("determinism", True, f"{len(seen.runs)} fresh processes agree under other {varied}", facts=facts)


async def effects(subject: Subject, config: GateConfig, seen: Replay) -> Check:
    """Nothing but a result came of the calls."""
    found: list[str] = []
    for run in seen.runs:
        found += [f"{event} {detail}".strip() for _, event, detail in run.effects]
        found += [f"a change of {name}" for name in run.state]
        found += ["output on stdout or stderr"] if run.printed else []
    found += ["a change of an argument" for results in seen.results.values() for result in results if result.mutates]
    kinds = list(dict.fromkeys(found))
    if kinds:
        return Check(
            "effects",
            False,
            f"side effects were seen: {'; '.join(kinds[:3])}: only a function that does nothing but return is admitted",
            facts={"seen": kinds[:20]},
        )
    return Check("effects", True, "no file, process, network, output, argument, module or process state was touched")


async def limits(subject: Subject, config: GateConfig, seen: Replay) -> Check:
    """Time per call (of its runs the fastest, so that a busy machine refuses nothing), import time, memory."""
    slowest = max(min(result.seconds for result in results) for results in seen.results.values())
    waits = max(min(r.wall_s for r in seen.results[task.messages[-1].content]) for task in seen.drawn)
    import_s = min(run.import_s for run in seen.runs)
    memory = max(run.max_rss_mib for run in seen.runs)
    facts = {"slowest_call_s": slowest, "longest_wait_s": waits, "import_s": import_s, "max_rss_mib": memory}
    for what, got, most, unit in (
        ("the slowest call takes", slowest, config.call_s, "s of CPU"),
        ("the call that waits longest takes", waits, config.wait_s, "s"),
        ("importing it takes", import_s, config.import_s, "s"),
        ("a process holds", memory, config.memory_mib, "MiB"),
    ):
        if got > most:
            told = f"{what} {got:.3g} {unit}, at most {most:g} {unit} is allowed: leave out such inputs"
            return Check("limits", False, told, facts=facts)
    told = f"slowest call {slowest * 1e6:.0f} µs of CPU, import {import_s * 1e3:.0f} ms, {memory:.0f} MiB"
    return Check("limits", True, told, facts=facts)


REPLAYED = (runs, limits, determinism, gold, null, effects)
