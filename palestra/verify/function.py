"""Grade a Python function by hidden calls: inputs go in, plain data comes out, and the comparison is made here."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from palestra.errors import GraderError, SandboxError
from palestra.sandboxes.base import Sandbox
from palestra.sandboxes.zygote import Reply
from palestra.types import Outcome, Score, Task, Unscored
from palestra.verify import expect
from palestra.verify.answers import Answers, Failed, parse
from palestra.verify.compare import EXACT, Rules
from palestra.verify.forkers import Forkers, bounded
from palestra.verify.tally import evidence
from palestra.verify.values import Raised

CALLS = "calls"
NAME = "solution"
"""What a single file is imported as."""
Credit = Literal["fraction", "all"]


@dataclass(frozen=True, slots=True)
class Call:
    """A hidden call: the text of its arguments, as in ``1, [2], key='a'``, and of what is expected (``expect``)."""

    args: str
    expected: str


@dataclass(frozen=True, slots=True)
class FunctionCalls:
    """Score the function ``symbol`` of the Python text in artifact ``artifact`` by hidden calls.

    module     where the function is part of a larger work: the module to import, among the .py artifacts below the
               folder ``root``; ``artifact`` is then the file that must be there
    root       "" for the workspace itself
    calls      the hidden calls; those in ``task.facts["calls"]`` ({"args": …, "expected": …}) where there are none here
    rules      when a result is what was expected
    credit     "fraction": the share of right calls; "all": 1 only when every call is right, and a call that gives no
               result is the last one made
    classes    (class, declared fields): objects of these cross as records; the classes can be named in arguments
    iterate    items read of a returned iterator
    call_s     CPU seconds of one call; total_s: seconds of all together, imports included
    most       characters of one result
    forkers    zygotes to fork from; None starts one for each grading

    Every grading is a fork of an interpreter that sees the arguments and no expected value. All calls of a grading run
    in one process, in order, on fresh arguments; one that ends the process costs its own result only. Modules are
    imported from text: none finds a file beside it. No artifact, or one that cannot be imported, scores 0. Unscored:
    no readable calls, no sandbox."""

    symbol: str
    artifact: str = "solution.py"
    module: str | None = None
    root: str = ""
    calls: tuple[Call, ...] = ()
    rules: Rules = EXACT
    credit: Credit = "fraction"
    classes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    iterate: int = 1000
    call_s: float = 1.0
    total_s: float = 20.0
    most: int = 1 << 18
    forkers: Forkers | None = field(default=None, compare=False, repr=False)

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        try:
            calls = self.calls or _calls_of(task)
            wanted = [_expected(call.expected) for call in calls]
            if self.artifact not in outcome.artifacts:
                return _nothing(f"there is no {self.artifact}")
            return self._score(await self._answered(outcome, calls), wanted)
        except UnicodeDecodeError:
            return _nothing(f"{self.artifact if self.module is None else 'a module'} is not UTF-8 text")
        except (SandboxError, GraderError, expect.BadExpectation) as error:
            return Unscored(f"task {task.id}: {error}")

    async def right(self, outcome: Outcome, calls: tuple[Call, ...]) -> list[bool]:
        """Which of ``calls`` the work gets right. Raises SandboxError, GraderError, BadExpectation."""
        answers = await self._answered(outcome, calls)
        if answers.tampered or answers.refused:
            return [False] * len(calls)
        got = [*answers.results, *[Failed("was not reached")] * (len(calls) - len(answers.results))]
        return [
            type(one) is not Failed and self.rules.same(one, _expected(call.expected))
            for one, call in zip(got, calls, strict=True)
        ]

    async def _answered(self, outcome: Outcome, calls: tuple[Call, ...]) -> Answers:
        files = self._files(outcome)
        async with AsyncExitStack() as stack:
            forkers = self.forkers
            if forkers is None:
                forkers = await stack.enter_async_context(Forkers(1))
            return await self._answers(forkers, files, [call.args for call in calls])

    def _files(self, outcome: Outcome) -> dict[str, str]:
        """The texts that can be imported, by path below ``root``. Raises UnicodeDecodeError."""
        if self.module is None:
            return {f"{NAME}.py": outcome.artifacts[self.artifact].decode()}
        lead = f"{self.root}/" if self.root else ""
        found = {path.removeprefix(lead): data for path, data in outcome.artifacts.items() if path.startswith(lead)}
        return {path: data.decode() for path, data in found.items() if path.endswith(".py")}

    async def _answers(self, forkers: Forkers, files: dict[str, str], args: list[str]) -> Answers:
        """Every call answered, as long as there is time; a new process goes on where one was ended by a call."""
        ends = time.monotonic() + self.total_s
        gathered = Answers()
        while not (gathered.ended or gathered.refused or gathered.tampered) and len(gathered.results) < len(args):
            left = ends - time.monotonic()
            if left <= 0:
                break
            first = len(gathered.results)
            limits = bounded(forkers.limits, left, (len(args) - first + 1) * (self.most + 1024))
            reply = await forkers.call(self._request(files, args[first:], first), limits)
            answers = parse(reply.frames, first, len(args))
            results = gathered.results + answers.results
            gathered = answers
            gathered.results = results
            if reply.outcome == "tampered":
                gathered.tampered = gathered.tampered or "something was written where only the driver writes"
            elif not answers.ended and not answers.refused and not answers.tampered:
                self._died(gathered, reply)
            if self.credit == "all" and any(type(result) is Failed for result in gathered.results):
                break  # one wrong answer decides
        return gathered

    def _died(self, answers: Answers, reply: Reply) -> None:
        if self.credit == "all" and answers.results and type(answers.results[-1]) is Failed:
            return  # it ran out of time, and was told to end there
        if not answers.is_ready:
            answers.refused = f"its import {_end(reply)}"
        else:
            answers.results.append(Failed(_end(reply)))

    def _request(self, files: dict[str, str], args: list[str], first: int) -> bytes:
        asked = {
            "files": files,
            "module": self.module or NAME,
            "symbol": self.symbol,
            "args": args,
            "first": first,
            "stop": self.credit == "all",
            "classes": dict(self.classes),
            "call_s": self.call_s,
            "import_s": self.total_s / 2,
            "iterate": self.iterate,
            "most": self.most,
        }
        return json.dumps(asked).encode()

    def _score(self, answers: Answers, wanted: list[Any]) -> Score:
        if answers.tampered:
            return _nothing(f"tampered: {answers.tampered}", tampered=1.0)
        if answers.refused:
            return _nothing(answers.refused)
        wrong: dict[str, list[int]] = {}
        for index, value in enumerate(wanted):
            got = answers.results[index] if index < len(answers.results) else Failed("was not reached in time")
            if type(got) is Failed or not self.rules.same(got, value):
                wrong.setdefault(_wrong(got, value), []).append(index)
        right = len(wanted) - sum(map(len, wrong.values()))
        share = right / len(wanted)
        value = share if self.credit == "fraction" else float(right == len(wanted))
        return Score(
            value, {"passed": share, "loaded": 1.0, "tampered": 0.0}, evidence("calls", right, len(wanted), wrong)
        )


def _calls_of(task: Task) -> tuple[Call, ...]:
    """Raises GraderError where the task's facts hold no list of calls."""
    listed = task.facts.get(CALLS)
    if not isinstance(listed, (list, tuple)) or not listed:
        raise GraderError(f"its facts hold no hidden calls under {CALLS!r}")
    for call in listed:
        if not isinstance(call, Mapping) or {type(call.get(key)) for key in ("args", "expected")} != {str}:
            raise GraderError(f"a hidden call must be {{'args': text, 'expected': text}}, got {str(call)[:60]!r}")
    return tuple(Call(call["args"], call["expected"]) for call in listed)


@lru_cache(1 << 14)
def _expected(text: str) -> Any:
    return expect.read(text)


def _wrong(got: Any, wanted: Any) -> str:
    """What is wrong with a result, telling nothing of what was expected but whether an exception was."""
    if type(got) is Failed:
        return got.words
    if type(got) is Raised:
        return "raised an exception" if type(wanted) is not Raised else "raised another exception"
    return "returned, and should have raised" if type(wanted) is Raised else "gave another value"


def _nothing(evidence: str, tampered: float = 0.0) -> Score:
    return Score(0.0, {"passed": 0.0, "loaded": 0.0, "tampered": tampered}, evidence)


def _end(reply: Reply) -> str:
    if reply.outcome == "timed_out":
        return "ran out of time"
    if reply.outcome == "killed":
        return f"was killed by signal {-reply.exit_code}"
    return f"ended the process (exit code {reply.exit_code})"
