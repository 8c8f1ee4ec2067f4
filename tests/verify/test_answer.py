"""The grader of literal answers."""

import pytest

from palestra.types import Message, Outcome, Score, Task, Unscored
from palestra.verify.answer import LiteralAnswer


def task(expected):
    return Task("t", "e", "train", 0, (Message("user", "f(1)"),), {} if expected is None else {"expected": expected})


async def graded(answer, expected, **settings):
    said = (Message("user", "f(1)"),) + (() if answer is None else (Message("assistant", answer),))
    return await LiteralAnswer(**settings).grade(task(expected), Outcome(said))


@pytest.mark.parametrize(("answer", "value"), [("[1, 2]", 1.0), (" [1,2]\n", 1.0), ("(1, 2)", 0.0), ("[1, 2.0]", 0.0)])
async def test_right_and_wrong(answer, value):
    score = await graded(answer, "[1, 2]")
    assert isinstance(score, Score) and score.value == value and score.components == {"readable": 1.0}


@pytest.mark.parametrize(
    "answer", [None, "", "the answer is [1, 2]", "[1, 2]; print(1)", "[" * 100_000, "9" * 10_000_000]
)
async def test_no_literal_scores_nothing(answer):
    score = await graded(answer, "[1, 2]")
    assert isinstance(score, Score) and score.value == 0.0 and score.components == {"readable": 0.0}


async def test_the_last_answer_counts():
    said = (Message("assistant", "1"), Message("user", "again"), Message("assistant", "2"))
    score = await LiteralAnswer().grade(task("2"), Outcome(said))
    assert isinstance(score, Score) and score.value == 1.0


async def test_evidence_never_tells_what_was_expected():
    score = await graded("'guess'", "'a secret'")
    assert isinstance(score, Score) and "secret" not in score.evidence
    other = await graded("7", "'a secret'")
    assert isinstance(other, Score) and "type" in other.evidence and "secret" not in other.evidence


@pytest.mark.parametrize("expected", [None, "not a literal"])
async def test_a_task_without_a_readable_answer_is_unscored(expected):
    assert isinstance(await graded("1", expected), Unscored)


async def test_tolerance_is_the_graders():
    assert (await graded("0.30000000000000004", "0.3")).value == 0.0
    assert (await graded("0.30000000000000004", "0.3", rel_tol=1e-9)).value == 1.0
