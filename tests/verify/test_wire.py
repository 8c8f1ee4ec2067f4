"""What crosses from graded code: everything plain, whole; nothing else, ever."""

import collections
import datetime
import decimal
import fractions
import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.verify.compare import Rules
from palestra.verify.inside.wire import NotPlain, Writer
from palestra.verify.values import Array, BadWire, Kin, Produced, Record, decode
from tests.verify.plain import PYTHON

EXACT = Rules(signed_zero=True)


def crossed(value, classes=None, **bounds):
    return decode(Writer(classes or {}, **bounds).text(value))


@given(PYTHON)
@settings(max_examples=150)
def test_plain_data_crosses_whole(value):
    assert EXACT.same(crossed(value), value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner),
)


@given(JSON)
@settings(max_examples=150)
def test_any_json_is_a_value_or_refused(data):
    try:
        decode(json.dumps(data))
    except BadWire:
        pass


class Point:
    def __init__(self, x, y):
        self.x, self.y, self.hidden = x, y, object()


class Sly(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class Liar:
    __class__ = int

    def __eq__(self, other):
        return True


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (10**5000, 10**5000),
        ("\ud800\u202e\x00", "\ud800\u202e\x00"),
        (collections.OrderedDict(a=1), Kin("OrderedDict", {"a": 1})),
        (collections.Counter("aab"), Kin("Counter", {"a": 2, "b": 1})),
        (collections.deque([1, 2], maxlen=2), Kin("deque", [1, 2])),
        (range(3), Kin("range", [0, 1, 2])),
        ({"a": 1}.items(), Kin("dict_items", [("a", 1)])),
        (decimal.Decimal("1.50"), Record("Decimal", (("text", "1.50"),))),
        (fractions.Fraction(1, 3), Record("Fraction", (("text", "1/3"),))),
        (datetime.date(2024, 2, 29), Record("date", (("text", "2024-02-29"),))),
        (np.array([[1, 2], [3, 4]]), Array("int64", (2, 2), (1, 2, 3, 4))),
        (np.array(1.5), Array("float64", (), (1.5,))),
        (np.zeros((0, 3)), Array("float64", (0, 3), ())),
        (np.float32(0.5), Kin("float32", 0.5)),
        (np.bool_(True), Kin("bool", True)),
        (iter([1, 2]), Produced((1, 2))),
        (map(abs, [-1]), Produced((1,))),
        (Point(1, [2]), Record("Point", (("x", 1), ("y", [2])))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_relatives_cross_as_what_they_are(value, expected):
    assert EXACT.same(crossed(value, {"Point": ["x", "y"]}), expected)


def test_an_endless_iterator_is_cut():
    assert crossed(itertools.count(), iterate=3) == Produced((0, 1, 2), ended=False)


loop = []
loop.append(loop)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Sly(3), "Sly"),
        ([Sly(3)], "Sly"),
        (Liar(), "Liar"),
        (object(), "object"),
        (Point(1, 2), "Point"),
        (loop, "nested deeper"),
        ("x" * 2000, "too large"),
        (["x" * 90] * 20, "too large"),
        (10**4000, "too large"),
        (range(10**9), "too large"),
        (np.zeros(10**6), "too large"),
        (np.longdouble(1), "nested deeper"),
        (lambda: 1, "function"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_or_too_large_is_refused(value, told):
    with pytest.raises(NotPlain, match=told):
        crossed(value, most=1000)


def test_a_class_that_takes_a_known_name_is_refused():
    with pytest.raises(NotPlain):
        crossed(type("OrderedDict", (dict,), {})())
    with pytest.raises(NotPlain):
        crossed(type("Decimal", (), {})())


PATCHED = """
import builtins, json, os
from palestra.verify.inside.wire import Writer
write, make = os.write, Writer
for name in ("len", "type", "hasattr", "list", "int", "str", "dict", "getattr", "issubclass"):
    setattr(builtins, name, lambda *a, **k: 7)
json.dumps = json.encoder.encode_basestring_ascii = None
write(1, make({}).text([1, {"a": (2.5, None)}, iter([True])]).encode())
os._exit(0)
"""


def test_a_patch_of_builtins_passes_by():
    ran = subprocess.run([sys.executable, "-c", PATCHED], capture_output=True, check=True)
    assert decode(ran.stdout.decode()) == [1, {"a": (2.5, None)}, Produced((True,))]


@pytest.mark.parametrize(
    "text",
    ["", "{", '["?"]', '["l"', "[]", "[1]", '{"a": 1}', '["d", 1]', '["s", ["l"]]', '["i", 5]', '["i"]', '["b", "zz"]',
     '["a", "x", ["l", 3], 1]', '["a", "x", ["l", -1, -1], 1]', '["o", 1]', '["g"]', '["c", 1]', "[" * 5000,
     '["l",' * 300 + "1" + "]" * 300, "9" * 5000],
)  # fmt: skip
def test_text_that_the_writer_does_not_write_is_refused(text):
    with pytest.raises(BadWire):
        decode(text)
