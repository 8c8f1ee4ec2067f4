"""Graders of graders: values by hand, what is asked, and that the unknown stays unknown."""

from dataclasses import dataclass, field

import pytest

from palestra.errors import GraderError
from palestra.types import Score, Unscored
from palestra.verify.compose import all_of, first_failure, gated_by, staged, weighted
from tests.verify.grading import left, task


@dataclass
class Says:
    """A grader with a fixed verdict, which counts how often it is asked."""

    verdict: object
    asked: list = field(default_factory=list)

    async def grade(self, task, outcome, sandbox=None):
        self.asked.append((task.id, sandbox))
        return self.verdict


def says(value, **components):
    return Says(Score(value, components, f"worth {value}"))


LOST = Unscored("no sandbox")


async def graded(grader):
    return await grader.grade(task(), left({}))


async def test_all_of_is_the_least():
    score = await graded(all_of(a=says(0.5, speed=0.25), b=says(0.75)))
    assert score == Score(0.5, {"a": 0.5, "a.speed": 0.25, "b": 0.75}, "a: worth 0.5; b: worth 0.75")


async def test_weighted_is_the_weighted_mean():
    """(3 · 0.5 + 1 · 1) / 4 = 0.625"""
    assert (await graded(weighted({"a": 3, "b": 1}, a=says(0.5), b=says(1.0)))).value == 0.625


async def test_many_equal_weights_do_not_sum_above_one():
    many = {f"p{n}": says(1.0) for n in range(10)}
    assert (await graded(weighted(dict.fromkeys(many, 0.1), **many))).value == pytest.approx(1.0, abs=1e-12)


async def test_a_gate_that_is_shut_asks_no_further():
    body = says(1.0)
    shut = await graded(gated_by(says(0.5), body))
    assert shut.value == 0.0 and body.asked == [] and "not asked" in shut.evidence
    assert (await graded(gated_by(says(0.5), says(0.25), least=0.5))).value == 0.25


async def test_first_failure_stops_there():
    last = says(0.0)
    assert (await graded(first_failure(a=says(1.0), b=says(0.5), c=last))).value == 0.5
    assert last.asked == []
    assert (await graded(first_failure(a=says(1.0), b=says(1.0)))).value == 1.0


async def test_stages_count_as_far_as_they_are_full():
    """Weights 1, 2, 1: 1 + 2 · 0.5 of 4 = 0.5; the third is not reached."""
    last = says(1.0)
    grader = staged({"a": 1, "b": 2, "c": 1}, a=says(1.0), b=says(0.5), c=last)
    assert (await graded(grader)).value == 0.5 and last.asked == []
    assert (await graded(staged(a=says(1.0), b=says(1.0)))).value == 1.0
    assert (await graded(staged(a=says(0.0), b=says(1.0)))).value == 0.0


@pytest.mark.parametrize(
    "whole",
    [
        all_of(a=says(0.0), x=Says(LOST)),
        weighted({"a": 1, "x": 1}, a=says(1.0), x=Says(LOST)),
        first_failure(a=says(1.0), x=Says(LOST)),
        staged(a=says(1.0), x=Says(LOST)),
        all_of(x=all_of(y=Says(LOST))),
    ],
)
async def test_the_unknown_stays_unknown(whole):
    found = await graded(whole)
    assert isinstance(found, Unscored) and found.reason.startswith("x: ") and found.reason.endswith("no sandbox")


async def test_a_gate_unknown_is_unknown_and_a_body_behind_a_shut_gate_is_not_needed():
    assert await graded(gated_by(Says(LOST), says(1.0))) == Unscored("gate: no sandbox")
    assert await graded(gated_by(says(1.0), Says(LOST))) == Unscored("body: no sandbox")
    assert (await graded(gated_by(says(0.0), Says(LOST)))).value == 0.0
    assert (await graded(first_failure(a=says(0.0), x=Says(LOST)))).value == 0.0


async def test_parts_are_given_task_and_sandbox():
    part, box = says(1.0), object()
    await staged(a=part).grade(task(id="t7"), left({}), box)
    assert part.asked == [("t7", box)]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: all_of(), "at least one part"),
        (lambda: weighted({"a": 1}, a=says(1), b=says(1)), "'b' is only in one"),
        (lambda: weighted({"a": 0}, a=says(1)), "above 0"),
        (lambda: staged({"a": float("nan")}, a=says(1)), "above 0"),
        (lambda: gated_by(says(1), says(1), least=0), r"\(0, 1\]"),
    ],
)
def test_wholes_that_make_no_sense(make, told):
    with pytest.raises(GraderError, match=told):
        make()
