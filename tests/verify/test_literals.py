"""Plain data as text: what is written reads back, and equality is by type and value."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.verify.inside.literals import MAX_DEPTH, NotPlain, read, read_first, same, show

SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text() | st.binary()
KEYS = st.booleans() | st.integers() | st.text(max_size=5) | st.tuples(st.integers(), st.text(max_size=3))
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN)
@settings(max_examples=300)
def test_what_is_written_reads_back(value):
    assert same(read(show(value)), value)
    assert show(read(show(value))) == show(value)


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_is_a_literal_or_not_plain_and_nothing_else(text):
    try:
        value = read(text)
    except NotPlain:
        return
    assert same(read(show(value)), value)


@given(PLAIN)
def test_a_value_is_the_same_as_itself_and_as_no_other_type(value):
    assert same(value, value)
    assert not same(value, [value])
    assert not same((value,), [value])


@given(st.dictionaries(KEYS, SCALARS, min_size=2, max_size=5))
def test_the_order_of_a_dict_does_not_count(value):
    assert same(value, dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("True", "1"),
        ("False", "0"),
        ("1", "1.0"),
        ("[1]", "(1,)"),
        ("{1}", "{True}"),
        ("{1: 'a'}", "{True: 'a'}"),
        ("{1: 'a'}", "{1.0: 'a'}"),
        ("'a'", "b'a'"),
        ("None", "False"),
        ("{}", "set()"),
        ("[]", "()"),
        ("0.0", "-0.0"),
        ("nan", "inf"),
        ("[1, 2]", "[2, 1]"),
        ("{1: 2}", "{1: 2, 3: 4}"),
        ("'a'", "'A'"),
    ],
)
def test_values_that_must_differ(left, right):
    assert not same(read(left), read(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("nan", "nan"),
        ("1e999", "inf"),
        ("0x10", "16"),
        ("1_000", "1000"),
        ("'a'", '"a"'),
        ("{2, 1}", "{1,2}"),
        (" 7 ", "7"),
    ],
)
def test_spellings_of_one_value(left, right):
    assert same(read(left), read(right))


def test_tolerance_is_relative_and_does_not_reach_keys_or_other_types():
    assert same(1.0, 1.0 + 1e-12, 1e-9)
    assert not same(1.0, 1.0 + 1e-6, 1e-9)
    assert not same(0.0, 1e-12, 1e-9)  # relative: nothing is near zero
    assert same([1.5, {"a": math.pi}], [1.5, {"a": math.pi * (1 + 1e-12)}], 1e-9)
    assert not same({1.0: 1}, {1.0 + 1e-12: 1}, 1e-9)
    assert not same(10**20, 10**20 + 1, 1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "", "1 2", "[1", "1]", "[1,,2]", "{1: 2, 3}", "(", "x", "x.y", "f(1)", "1 + 2", "1 if 1 else 2", "lambda: 1",
        "f'{1}'",
        "'a' 'b'", "__import__('os')", "'''a'''", "1__0", "012", "[1 2]", "{[]: 1}", "{{}}", "'\\q'", "'a\nb'", "1j",
        "True1", "...", "1 # one", "(1, 2", "\N{ARABIC-INDIC DIGIT ONE}j",
    ],
)  # fmt: skip
def test_what_is_no_literal_of_plain_data(text):
    with pytest.raises(NotPlain):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        "(" * 300 + ")" * 300,
        "-" * 4000 + "1",
        "9" * 4000,
        "0x" + "f" * 3000,
        "'" + "\\x41" * 3000,
        "{" * 17,
    ],
)
def test_text_made_to_exhaust_is_refused_at_once(text):
    with pytest.raises(NotPlain):
        read(text)


def test_bounds_are_inclusive():
    deepest = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert show(read(deepest)) == deepest
    with pytest.raises(NotPlain, match="deeper"):
        read("[" + deepest + "]")
    with pytest.raises(NotPlain, match="deeper"):
        show([read(deepest)])


class Sly(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "value", [Sly("a"), [Sly("a")], {Sly("a"): 1}, 1j, object(), range(3), frozenset({1}), 2**2000]
)
def test_only_plain_data_by_exact_type_is_written(value):
    with pytest.raises(NotPlain):
        show(value)


def test_a_value_that_holds_itself_is_not_plain():
    loop: list = []
    loop.append(loop)
    with pytest.raises(NotPlain, match="deeper"):
        show(loop)


def test_sets_are_written_in_one_order():
    assert show({"b", "a", 1}) == "{'a', 'b', 1}"
    assert show(set()) == "set()"


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("1", 1),
        ("[1, (2, 3)], 4", [1, (2, 3)]),
        ("'a, b', x=1", "a, b"),
        ("{'k': [1]}, 2", {"k": [1]}),
        ("-2.5, 1", -2.5),
    ],
)
def test_the_first_of_several_arguments(text, first):
    assert same(read_first(text), first)


@pytest.mark.parametrize("text", ["", "x=1", "[1, 2", "]"])
def test_no_first_argument(text):
    with pytest.raises(NotPlain):
        read_first(text)
