"""Grade an answer that is a literal: read it as plain data, compare it by type and value with what was expected."""

from __future__ import annotations

from dataclasses import dataclass

from palestra.sandboxes.base import Sandbox
from palestra.types import Outcome, Score, Task, Unscored
from palestra.verify.inside.literals import NotPlain, read, same

EXPECTED = "expected"


@dataclass(frozen=True, slots=True)
class LiteralAnswer:
    """Score 1 when the last assistant message is the expected literal, else 0; no partial credit.

    rel_tol  relative tolerance of floats; 0 asks for the same number (see ``literals.same`` for every rule)

    The answer is data and is never evaluated, so that no sandbox is needed. Text that is no literal, however long or
    deep, scores 0. A task without a readable expected literal is the grader's own failure: Unscored."""

    rel_tol: float = 0.0

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        said = [message.content for message in outcome.transcript if message.role == "assistant"]
        expected = task.facts.get(EXPECTED)
        if not isinstance(expected, str):
            return Unscored(f"task {task.id}: its facts hold no literal under {EXPECTED!r}")
        return self.compare(said[-1] if said else "", expected)

    def compare(self, answer: str, expected: str) -> Score | Unscored:
        """The score of ``answer`` against the literal ``expected``; the evidence never quotes what was expected."""
        try:
            wanted = read(expected)
        except NotPlain as error:
            return Unscored(f"the expected answer is not a literal of plain data: {error}")
        try:
            got = read(answer)
        except NotPlain as error:
            return Score(0.0, {"readable": 0.0}, f"the answer is not a literal of plain data: {error}")
        if same(got, wanted, self.rel_tol):
            return Score(1.0, {"readable": 1.0}, "the answer equals the expected value")
        told = "has another type" if type(got) is not type(wanted) else "has another value"
        return Score(0.0, {"readable": 1.0}, f"the answer {told}")
