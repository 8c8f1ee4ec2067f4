"""Short answers: what reads as what, what does not, and the ways to have it both ways."""

from fractions import Fraction

import pytest

from palestra.types import Message, Outcome, Score, Unscored
from palestra.verify.reply import After, Tagged, boxed, whole
from palestra.verify.short import ChoiceAnswer, JsonAnswer, NumberAnswer, SetAnswer, number
from tests.verify.grading import task


async def verdict(grader, said, expected):
    """The value, and whether the answer could be read."""
    outcome = Outcome((Message("user", "7"), Message("assistant", said)))
    score = await grader.grade(task({"expected": expected}), outcome)
    assert isinstance(score, Score), score
    assert str(expected) not in score.evidence or str(expected) in ("", "A", "a")
    return score.value, score.components["readable"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", 42),
        (" -1,234.50 ", Fraction(-2469, 2)),
        ("\u22123", -3),
        ("+.5", Fraction(1, 2)),
        ("5.", 5),
        ("1.5e3", 1500),
        ("1E-2", Fraction(1, 100)),
        ("3/4", Fraction(3, 4)),
        ("-3 / 4", Fraction(-3, 4)),
        ("\\frac{3}{4}", Fraction(3, 4)),
        ("-\\dfrac{3}{4}", Fraction(-3, 4)),
        ("0.1", Fraction(1, 10)),
        ("9" * 400, 10**400 - 1),
    ],
)
def test_numbers(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "1,5", "12,34", "1_000", "nan", "inf", "1e9999", "0x10", "1 2", "five", "3/0", "1/2/3", "٣", "9" * 401,
     "1.2.3", "--1", "True", "1e", "\\frac{1}{0}", "1" + "0" * 300 + "e999" * 30],
)  # fmt: skip
def test_what_is_no_number(text):
    assert number(text) is None


@pytest.mark.parametrize(
    ("grader", "said", "expected", "found"),
    [
        (NumberAnswer(), "42", 42, (1, 1)),
        (NumberAnswer(), "42.0", "42", (1, 1)),
        (NumberAnswer(), "the answer is 42", 42, (0, 0)),
        (NumberAnswer(), "41 42", 42, (0, 0)),
        (NumberAnswer(), "0.30000000000000004", 0.3, (0, 1)),
        (NumberAnswer(rel_tol=1e-6), "0.3000001", 0.3, (1, 1)),  # 1e-7 <= 3e-7
        (NumberAnswer(rel_tol=1e-7), "0.3000001", 0.3, (0, 1)),
        (NumberAnswer(abs_tol=0.5), "-0.5", 0, (1, 1)),
        (NumberAnswer(abs_tol=0.5), "0.51", 0, (0, 1)),
        (NumberAnswer(unit="km"), "5 km", 5, (1, 1)),
        (NumberAnswer(unit="$"), "$1,000", 1000, (1, 1)),
        (NumberAnswer(), "5 km", 5, (0, 0)),
        (NumberAnswer(unit="km"), "5 m", 5, (0, 0)),
        (NumberAnswer(extract=boxed), "so \\boxed{41}, no: \\boxed{\\frac{1}{2}}.", "1/2", (1, 1)),
        (NumberAnswer(extract=After()), "6 * 7\n#### 42\nthanks", 42, (1, 1)),
        (NumberAnswer(extract=Tagged()), "<answer>42</answer>", 42, (1, 1)),
        (NumberAnswer(extract=Tagged()), "<answer>1</answer><answer>42", 42, (0, 0)),
        (NumberAnswer(), "1e999" * 10**5, 42, (0, 0)),
        (ChoiceAnswer(), "B", "B", (1, 1)),
        (ChoiceAnswer(), "(b).", "B", (1, 1)),
        (ChoiceAnswer(), "A", "B", (0, 1)),
        (ChoiceAnswer(), "A or B", "B", (0, 0)),
        (ChoiceAnswer(), "", "B", (0, 0)),
        (ChoiceAnswer(("yes", "no")), "Yes.", "yes", (1, 1)),
        (SetAnswer(), "a, b", ["b", "a"], (1, 1)),
        (SetAnswer(), "a, b, b", ["b", "a"], (0, 1)),
        (SetAnswer(), "a, b, c", ["b", "a"], (0, 1)),
        (SetAnswer(), "A, b", ["b", "a"], (0, 1)),
        (SetAnswer(fold=True), "A, b", ["b", "a"], (1, 1)),
        (SetAnswer(";"), "a;b", ["a", "b"], (1, 1)),
        (JsonAnswer(), '{"b": [1.0, null], "a": "x"}', {"a": "x", "b": [1, None]}, (1, 1)),
        (JsonAnswer(), '```json\n{"a": true}\n```', {"a": True}, (1, 1)),
        (JsonAnswer(), '{"a": 1}', {"a": True}, (0, 1)),
        (JsonAnswer(), '{"a": true}', {"a": 1}, (0, 1)),
        (JsonAnswer(), '{"a": 1, "a": 2}', {"a": 2}, (0, 0)),
        (JsonAnswer(), '{"a": 1, "b": 2}', {"a": 1}, (0, 1)),
        (JsonAnswer(), "[1, 2]", [2, 1], (0, 1)),
        (JsonAnswer(), "NaN", 1, (0, 0)),
        (JsonAnswer(), "null", None, (1, 1)),
        (JsonAnswer(), "0", None, (0, 1)),
        (JsonAnswer(), "[" * 10**5, [], (0, 0)),
        (JsonAnswer(), "1" * 5000, 1, (0, 0)),
    ],
)
async def test_verdicts(grader, said, expected, found):
    assert await verdict(grader, said, expected) == found


@pytest.mark.parametrize(
    ("grader", "facts"),
    [
        (NumberAnswer(), {}),
        (NumberAnswer(), {"expected": "many"}),
        (NumberAnswer(), {"expected": True}),
        (ChoiceAnswer(), {"expected": "E"}),
        (SetAnswer(), {"expected": "a, b"}),
        (JsonAnswer(), {}),
    ],
)
async def test_an_expected_value_that_cannot_be_read_is_unscored(grader, facts):
    found = await grader.grade(task(facts), Outcome((Message("assistant", "1"),)))
    assert isinstance(found, Unscored) and "'expected'" in found.reason


async def test_no_reply_is_no_answer():
    score = await NumberAnswer().grade(task({"expected": 7}), Outcome((Message("user", "7"),)))
    assert (score.value, score.components) == (0.0, {"readable": 0.0})


def test_places():
    assert whole(" a ") == "a"
    assert (After("A:")("A: 1\nA: 2 \n3"), After()("none")) == ("2", None)
    assert (Tagged("x")("<x> 1 </x> <x>2</x>"), Tagged("x")("</x><x>")) == ("2", None)
    assert (boxed("\\boxed{a{b}c} d"), boxed("\\boxed{a{b}"), boxed("boxed{1}")) == ("a{b}c", None, None)
    assert boxed("\\boxed{" * 10**5) is None
