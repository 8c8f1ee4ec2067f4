"""Canonical JSON: the examples of RFC 8785, and laws over arbitrary values and bytes."""

import json
import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.gate.canonical import MAX_DEPTH, NotCanonical, canonical, number, parse, parse_canonical


def double(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_the_numbers_of_the_standard(bits, expected):
    assert number(double(bits)) == expected


def test_the_example_of_the_standard():
    """RFC 8785, section 3.2.2 and 3.2.3."""
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "€$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16():
    """RFC 8785, section 3.2.3: U+1F600 is written as surrogates, so it comes before U+FB33."""
    keys = ["€", "\r", "\ufb33", "1", "\U0001f600", "\x80", "ö"]
    assert list(json.loads(canonical(dict.fromkeys(keys)))) == ["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (math.nan, "nan"),
        ([math.inf], "inf"),
        (2**53, "beyond"),
        (-(2**53), "beyond"),
        ({1: 2}, "key 1"),
        ("\ud800", "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ({1, 2}, "set"),
        (b"x", "bytes"),
    ],
)
def test_what_has_no_canonical_text(value, told):
    with pytest.raises(NotCanonical, match=told):
        canonical(value)


def test_the_deepest():
    deep = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert parse_canonical(canonical(deep)) == deep
    with pytest.raises(NotCanonical, match="deeper"):
        canonical([deep])
    with pytest.raises(NotCanonical, match="deeper"):
        parse_canonical(b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"a":1,"a":1}', "'a' stands twice"),
        (b"NaN", "NaN"),
        (b'{"a":1', "line 1, column 7"),
        (b'\xff"', "byte 0 is not UTF-8"),
        (b'{"b":1,"a":2}', "spelt otherwise"),
        (b'{"a": 1}', "spelt otherwise"),
        (b"1.0", "spelt otherwise"),
        (b'"\\u0041"', "spelt otherwise"),
        (b"1\n\n", "spelt otherwise"),
        (b"9007199254740993", "spelt otherwise"),
        (b"1" * 5000, "inf"),
    ],
)
def test_texts_that_are_not_canonical(text, told):
    with pytest.raises(NotCanonical, match=told):
        parse_canonical(text)


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(PLAIN)
def test_reading_gives_the_value_and_writing_again_the_text(value):
    said = canonical(value)
    assert parse_canonical(said) == value == json.loads(said, parse_int=float)
    assert canonical(parse(said)) == said


@settings(max_examples=300)
@given(PLAIN)
def test_the_order_and_the_spelling_of_the_input_do_not_count(value):
    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert canonical(turned(value)) == canonical(value)
    assert canonical(parse(json.dumps(value, indent=3).encode())) == canonical(value)


@settings(max_examples=500)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same_double(value):
    assert float(number(value)) == value and len(number(value)) <= 25


@settings(max_examples=200)
@given(PLAIN, PLAIN)
def test_two_values_share_a_text_only_when_they_are_equal(one, other):
    if canonical(one) == canonical(other):
        assert one == other


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    try:
        value = parse_canonical(data)
    except NotCanonical:
        return
    assert canonical(value) == data.removesuffix(b"\n")
