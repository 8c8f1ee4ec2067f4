"""Grade a program in any language by what it prints: input goes in, output comes out, and is compared here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from palestra.errors import GraderError, SandboxError
from palestra.sandboxes import ExecResult, Limits, Sandbox, open_sandbox
from palestra.sandboxes.base import Snapshot
from palestra.types import Outcome, Score, Task, Unscored
from palestra.verify.answers import harmless
from palestra.verify.languages import Language, language
from palestra.verify.outputs import Comparison, Exact
from palestra.verify.tally import evidence

CASES = "cases"
EXACT = Exact()
LIMITS = Limits(wall_s=5.0, cpu_s=5.0, memory_mib=1024, processes=64, file_mib=64, output_bytes=1 << 20)
BUILD = Limits(wall_s=60.0, cpu_s=60.0, memory_mib=2048, processes=128)


@dataclass(frozen=True, slots=True)
class Case:
    stdin: str
    stdout: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stdio:
    """Score the program in artifact ``artifact`` (by default the language's file name) by hidden cases.

    name     of the language (``languages.LANGUAGES``)
    cases    the hidden cases; where none are here, those in ``task.facts["cases"]``: {"stdin": …, "stdout": …,
             "args": […]}
    compare  when an output is what was expected: Exact, Tokens, Floats or Checker
    credit   "fraction": the share of right cases; "all": 1 only when every case is right, ended by the first wrong one
    env      variables of each case
    limits   of each case; ``build`` of the build; ``total_s``: seconds for all of it

    Everything runs in a sandbox made for this grading, which holds the program and never an expected output. A case
    starts from the files as they were after the build: what one leaves, the next does not see. A case is right when
    the program exits with 0 within its limits and the output is what was expected. No artifact, or one that does not
    build, scores 0. Unscored: no readable cases, a missing compiler, a checker that fails, no sandbox."""

    name: str
    artifact: str | None = None
    cases: tuple[Case, ...] = ()
    compare: Comparison = EXACT
    env: Mapping[str, str] = field(default_factory=dict)
    credit: Literal["fraction", "all"] = "fraction"
    limits: Limits = LIMITS
    build: Limits = BUILD
    total_s: float = 120.0

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        try:
            used, cases = language(self.name), self.cases or _cases_of(task)
            used.require()
            artifact = self.artifact or used.source
            if artifact not in outcome.artifacts:
                return Score(0.0, {"passed": 0.0, "built": 0.0}, f"there is no {artifact}")
            async with open_sandbox("local", mounts=used.mounts(), limits=used.bounded(self.limits)) as box:
                await box.write(used.source, outcome.artifacts[artifact])
                if used.build:
                    built = await box.exec(used.build, limits=used.bounded(self.build))
                    if words := _build_words(built):
                        return Score(0.0, {"passed": 0.0, "built": 0.0}, words)
                return await self._run(box, used, cases)
        except (SandboxError, GraderError) as error:
            return Unscored(f"task {task.id}: {error}")

    async def _run(self, box: Sandbox, used: Language, cases: tuple[Case, ...]) -> Score:
        ends, built = time.monotonic() + self.total_s, await box.snapshot()
        wrong: dict[str, list[int]] = {}
        for index, case in enumerate(cases):
            late = time.monotonic() > ends
            words = "was not reached in time" if late else await self._judge(box, built, used, case)
            if words:
                wrong.setdefault(words, []).append(index)
                if self.credit == "all":
                    break
        failed = sum(map(len, wrong.values()))
        told = evidence("cases", len(cases) - failed, len(cases), wrong) if self.credit == "fraction" else _first(wrong)
        share = (len(cases) - failed) / len(cases) if self.credit == "fraction" else float(not wrong)
        return Score(share, {"passed": share, "built": 1.0}, told)

    async def _judge(self, box: Sandbox, built: Snapshot, used: Language, case: Case) -> str:
        """What is wrong with the program in this case; empty when nothing is."""
        async with await box.fork(built) as fresh:
            ended = await fresh.exec([*used.run, *case.args], env=self.env, stdin=case.stdin.encode())
        if words := _end_words(ended):
            return words
        same = await self.compare.same(case.stdin.encode(), ended.stdout, case.stdout.encode())
        return "" if same else "gave another output"


def _first(wrong: Mapping[str, list[int]]) -> str:
    return next((f"case {cases[0]} {words}" for words, cases in wrong.items()), "every case is right")


def _build_words(ended: ExecResult) -> str:
    if ended.exit_code == 0:
        return ""
    if ended.timed_out:
        return "its build ran out of time"
    return f"it does not build: {harmless(ended.stderr.decode(errors='replace'))}"


def _end_words(ended: ExecResult) -> str:
    if ended.timed_out:
        return "ran out of time"
    if ended.truncated:
        return "printed too much"
    if ended.limits_hit:
        return f"met its limit of {', '.join(ended.limits_hit)}"
    if ended.exit_code < 0:
        return f"was killed by signal {-ended.exit_code}"
    return f"exited with {ended.exit_code}" if ended.exit_code else ""


def _cases_of(task: Task) -> tuple[Case, ...]:
    """Raises GraderError where the task's facts hold no list of cases."""
    listed = task.facts.get(CASES)
    if not isinstance(listed, (list, tuple)) or not listed:
        raise GraderError(f"its facts hold no hidden cases under {CASES!r}")
    return tuple(_case(case) for case in listed)


def _case(case: object) -> Case:
    if isinstance(case, Mapping) and isinstance(case.get("stdin"), str) and isinstance(case.get("stdout"), str):
        args = case.get("args", [])
        if isinstance(args, (list, tuple)) and all(isinstance(arg, str) for arg in args):
            return Case(case["stdin"], case["stdout"], tuple(args))
    raise GraderError(f"a hidden case must be {{'stdin': text, 'stdout': text}}, got {str(case)[:60]!r}")
