"""The comparison rules: laws that hold for any value, and cases worked by hand."""

import itertools
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.errors import GraderError
from palestra.verify import expect
from palestra.verify.compare import LARGEST_MATCHING, Rules
from palestra.verify.inside import literals
from palestra.verify.values import Raised
from tests.verify.plain import FLOATS, PYTHON, SCALARS, VALUES
from tests.verify.test_literals import PLAIN

RULES = st.builds(
    Rules,
    rel_tol=st.sampled_from([0.0, 1e-9, 0.5]),
    abs_tol=st.sampled_from([0.0, 1e-6, 1.0]),
    ulp=st.sampled_from([0, 1, 4]),
    signed_zero=st.booleans(),
    ordered=st.booleans(),
    strict_types=st.booleans(),
    bool_is_int=st.booleans(),
)
MANY = settings(max_examples=150)


@given(VALUES, RULES)
@MANY
def test_a_value_is_the_same_as_itself(value, rules):
    assert rules.same(value, value)


@given(PYTHON, PYTHON, RULES)
@MANY
def test_sameness_is_mutual(left, right, rules):
    assert rules.same(left, right) == rules.same(right, left)


@given(VALUES, VALUES, RULES)
@MANY
def test_looser_rules_accept_what_stricter_ones_accept(left, right, rules):
    if Rules(signed_zero=True).same(left, right):
        assert rules.same(left, right)
    if rules.same(left, right) and rules.ordered:
        looser = replace(rules, rel_tol=rules.rel_tol * 2, abs_tol=rules.abs_tol + 1, ulp=rules.ulp + 1)
        assert looser.same(left, right)
        assert replace(rules, strict_types=False).same(left, right)


@given(PLAIN, PLAIN)
@MANY
def test_the_strictest_rules_are_those_of_literals(left, right):
    assert Rules(signed_zero=True).same(left, right) == literals.same(left, right)


@given(st.lists(PYTHON, max_size=5), st.randoms(use_true_random=False), RULES)
@MANY
def test_without_order_any_order_will_do(items, order, rules):
    shuffled = list(items)
    order.shuffle(shuffled)
    assert replace(rules, ordered=False).same(shuffled, items)


@given(st.lists(FLOATS | st.integers(-3, 3), max_size=5), st.lists(FLOATS | st.integers(-3, 3), max_size=5), RULES)
@MANY
def test_without_order_is_some_permutation(left, right, rules):
    found = any(rules.same(list(some), right) for some in itertools.permutations(left)) if rules.ordered else None
    if found is not None:
        assert replace(rules, ordered=False).same(left, right) == found


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 5))
@MANY
def test_ulp_counts_neighbours(value, steps):
    other = value
    for _ in range(steps):
        other = math.nextafter(other, math.inf)
    if not math.isinf(other):
        assert Rules(ulp=max(steps, 1)).same(value, other)
        if steps > 1:
            assert not Rules(ulp=steps - 1).same(value, other)


@given(SCALARS, RULES)
@MANY
def test_wrapped_is_not_bare(value, rules):
    assert not rules.same([value], value) and not rules.same(value, (value,))


LENIENT, UNORDERED = Rules(strict_types=False), Rules(ordered=False)


@pytest.mark.parametrize(
    ("rules", "got", "wanted", "is_same"),
    [
        (Rules(), "True", "1", False),
        (LENIENT, "True", "1", False),
        (Rules(bool_is_int=True), "True", "1", True),
        (Rules(bool_is_int=True), "[False, {True: 2}]", "[0, {1: 2}]", True),
        (Rules(bool_is_int=True), "True", "1.0", False),
        (Rules(), "1", "1.0", False),
        (LENIENT, "1", "1.0", True),
        (LENIENT, f"{2**53 + 1}", f"{2.0**53}", False),
        (LENIENT, "1" + "0" * 400, "inf", False),
        (LENIENT, "1" + "0" * 400, "1e308", False),
        (Rules(rel_tol=0.1), "10", "11", False),
        (Rules(rel_tol=0.1), "10.0", "11.0", True),
        (Rules(rel_tol=0.1), "10.0", "11.2", False),
        (Rules(rel_tol=0.1), "0.0", "1e-300", False),
        (Rules(abs_tol=0.1), "0.0", "1e-300", True),
        (Rules(rel_tol=0.1), "inf", "1e308", False),
        (Rules(rel_tol=0.1), "inf", "-inf", False),
        (Rules(rel_tol=0.1), "1+1j", "1.05+1.05j", True),
        (Rules(rel_tol=0.1), "1+1j", "1+2j", False),
        (Rules(), "nan", "nan", True),
        (Rules(nan_equal=False), "[nan]", "[nan]", False),
        (Rules(nan_equal=False, ordered=False), "[nan]", "[nan]", False),
        (Rules(), "0.0", "-0.0", True),
        (Rules(signed_zero=True), "0.0", "-0.0", False),
        (Rules(ulp=1), "0.0", "-5e-324", True),
        (Rules(ulp=1), "-5e-324", "5e-324", False),
        (Rules(ulp=2), "-5e-324", "5e-324", True),
        (Rules(), "[1]", "(1,)", False),
        (LENIENT, "[1]", "(1,)", True),
        (LENIENT, "[[1], (2,)]", "((1.0,), [2])", True),
        (Rules(), "{1}", "frozenset({1})", False),
        (LENIENT, "{1}", "frozenset({1})", True),
        (LENIENT, "[1]", "{1}", False),
        (LENIENT, "'a'", "b'a'", False),
        (Rules(), "OrderedDict({'a': 1})", "{'a': 1}", False),
        (LENIENT, "OrderedDict({'a': 1})", "{'a': 1}", True),
        (LENIENT, "range([0, 1])", "[0, 1]", True),
        (LENIENT, "float64(1.5)", "1.5", True),
        (Rules(), "float64(1.5)", "1.5", False),
        (Rules(), "{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", True),
        (Rules(rel_tol=0.5), "{1.0}", "{1.1}", False),
        (UNORDERED, "[1, [2, 3], 1]", "[[3, 2], 1, 1]", True),
        (UNORDERED, "[1, 1, 2]", "[1, 2, 2]", False),
        (UNORDERED, "{'a': [1, 2]}", "{'a': [2, 1]}", True),
        (Rules(ordered=False, abs_tol=1.0), "[0.0, 1.0]", "[2.0, 1.0]", True),
        (Rules(ordered=False, abs_tol=1.0), "[0.0, [1.0]]", "[[2.0], 1.0]", True),
        (Rules(ordered=False, abs_tol=2.0, strict_types=False), "[1, 3.0]", "[2, 2.5]", True),
        (Rules(), "array([[1, 2]], dtype='int64')", "array([[1, 2]], dtype='int64')", True),
        (Rules(), "array([[1, 2]], dtype='int64')", "array([1, 2], dtype='int64')", False),
        (Rules(), "array([1], dtype='int64')", "array([1], dtype='int32')", False),
        (LENIENT, "array([1], dtype='int64')", "array([1.0], dtype='float32')", True),
        (LENIENT, "array([[1, 2], [3, 4]], dtype='int64')", "[[1, 2], (3, 4)]", True),
        (LENIENT, "array([], dtype='int64')", "[]", True),
        (Rules(), "array([1], dtype='int64')", "[1]", False),
        (Rules(rel_tol=0.1), "Point(x=1.0, y=[2.0])", "Point(y=[2.1], x=1.0)", True),
        (Rules(), "Point(x=1)", "Other(x=1)", False),
        (Rules(), "Point(x=1)", "Point(x=1, y=2)", False),
        (Rules(), "Decimal('1.5')", "Decimal('1.5')", True),
        (Rules(), "Decimal('1.5')", "Decimal('1.50')", False),
        (Rules(), "iter([1, 2])", "iter([1, 2])", True),
        (Rules(), "iter([1, 2])", "[1, 2]", False),
        (LENIENT, "iter([1, 2])", "[1, 2]", True),
        (LENIENT, "[1, 2]", "iter([1, 2])", True),
        (LENIENT, "first([1, 2])", "[1, 2]", False),
        (Rules(), "iter([1, 2, 3])", "first([1, 2])", True),
        (Rules(), "first([1, 2, 3])", "first([1, 2])", True),
        (Rules(), "iter([1])", "first([1, 2])", False),
        (Rules(), "first([1, 2])", "iter([1, 2])", False),
        (Rules(), "None", "False", False),
        (Rules(), "''", "None", False),
    ],
)  # fmt: skip
def test_by_hand(rules, got, wanted, is_same):
    assert rules.same(expect.read(got), expect.read(wanted)) is is_same


def test_a_more_special_exception_will_do_and_a_more_general_one_will_not():
    wanted = expect.read("raises(ValueError)")
    assert Rules().same(Raised(("UnicodeDecodeError", "UnicodeError", "ValueError", "Exception")), wanted)
    assert not Rules().same(Raised(("Exception",)), wanted)
    assert not Rules().same("ValueError", wanted)


def test_long_lists_without_order():
    values = [random.Random(7).random() for _ in range(5000)]
    nearly = [value + 1e-9 for value in sorted(values)]
    assert Rules(ordered=False, abs_tol=1e-8).same(nearly, values)
    assert not Rules(ordered=False, abs_tol=1e-10).same(nearly, values)
    assert UNORDERED.same([[value] for value in nearly], [[value] for value in reversed(nearly)])
    long = [[float(value)] for value in range(LARGEST_MATCHING + 1)]
    with pytest.raises(GraderError, match="cannot be matched"):
        Rules(ordered=False, abs_tol=0.1).same(long, long)
    assert not Rules(ordered=False, abs_tol=0.1).same(long[:1], long)


@pytest.mark.parametrize("bad", [{"rel_tol": -1.0}, {"abs_tol": math.nan}, {"ulp": -1}, {"rel_tol": math.inf}])
def test_tolerances_are_numbers(bad):
    with pytest.raises(GraderError, match=next(iter(bad))):
        Rules(**bad)
