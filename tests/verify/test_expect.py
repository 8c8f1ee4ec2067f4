"""The text of an expectation."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from palestra.verify import expect
from palestra.verify.compare import Rules
from palestra.verify.values import Array, Kin, Produced, Raised, Record
from tests.verify.plain import PYTHON


@given(PYTHON)
@settings(max_examples=150)
def test_what_python_writes_is_read(value):
    assume("nanj" not in repr(value) and "infj" not in repr(value))  # Python itself cannot read these
    assert Rules().same(expect.read(repr(value)), value)


@given(st.text(max_size=40) | st.text("[](){},:'=1a.-+jnif ", max_size=40))
@settings(max_examples=150)
def test_any_text_is_read_or_refused(text):
    try:
        expect.read(text)
    except expect.BadExpectation:
        pass


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" -1.5e3 ", -1500.0),
        ("'a' 'b'", "ab"),
        ("1-2j", 1 - 2j),
        ("set()", set()),
        ("frozenset()", frozenset()),
        ("frozenset({1})", frozenset({1})),
        ("complex(1, 2)", 1 + 2j),
        ("array([[1, 2], [3, 4]], dtype='int64')", Array("int64", (2, 2), (1, 2, 3, 4))),
        ("array([], dtype='float64')", Array("float64", (0,), ())),
        ("array(1.5, dtype='float64')", Array("float64", (), (1.5,))),
        ("int8(1)", Kin("int8", 1)),
        ("bool_(True)", Kin("bool_", True)),
        ("Counter({'a': 1})", Kin("Counter", {"a": 1})),
        ("Point(x=1, y=Point(x=2, y=3))", Record("Point", (("x", 1), ("y", Record("Point", (("x", 2), ("y", 3))))))),
        ("Fraction('1/3')", Record("Fraction", (("text", "1/3"),))),
        ("iter(['a'])", Produced(("a",))),
        ("first([0])", Produced((0,), ended=False)),
        ("raises(KeyError)", Raised(("KeyError",))),
        ("raises(errors.MyError)", Raised(("errors.MyError",))),
    ],
)
def test_names(text, value):
    assert expect.read(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "...", "x", "1 + 1", "-'a'", "f(1)", "f'{1}'", "[x for x in y]", "Point(1, y=2)", "array([[1], [2, 3]])",
     "array([[1], [2, 3]], dtype='int64')", "array([1])", "raises()", "lambda: 1", "a.b", "{[1]: 2}", "{**{}}",
     "iter(1)", "set(1, 2)", "(" * 500 + ")" * 500, "1" * 5000, "__import__('os')", "Kin('x', 1)", "1 if 2 else 3"],
)  # fmt: skip
def test_what_is_no_expectation_is_refused(text):
    with pytest.raises(expect.BadExpectation):
        expect.read(text)


def test_a_text_without_end_is_refused():
    with pytest.raises(expect.BadExpectation, match="longer"):
        expect.read("1," * expect.MAX_TEXT)
