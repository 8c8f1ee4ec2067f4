"""Cutting a function out of its module, taking its body away, and finding what reaches a line."""

from __future__ import annotations

import pytest

from palestra.forge.code.slices import crash_at, cut, without_body

MODULE = '''"""About."""
from __future__ import annotations

import math
import re, os as system
from elsewhere import thing

LIMIT = 3
TABLE: dict = {"a": LIMIT}
unused = [1]


class Box:
    size = LIMIT


def helper(x):
    return TABLE.get(x, Box.size)


@staticmethod
def decorated(x):
    # says why
    return helper(x) + math.floor(x)


def foreign(x):
    return thing(x)


if LIMIT:
    def conditional(x):
        return 1


def uses_conditional(x):
    return conditional(x)
'''


def test_a_function_comes_with_all_that_it_needs_and_nothing_else():
    piece = cut(MODULE, "decorated")
    assert piece.name == "decorated"
    assert (
        piece.source
        == """from __future__ import annotations
import math
LIMIT = 3
TABLE: dict = {"a": LIMIT}

class Box:
    size = LIMIT


def helper(x):
    return TABLE.get(x, Box.size)


@staticmethod
def decorated(x):
    # says why
    return helper(x) + math.floor(x)
"""
    )
    compile(piece.source, "slice", "exec")


@pytest.mark.parametrize("name", ["foreign", "uses_conditional", "conditional", "Box", "absent", "LIMIT"])
def test_what_needs_more_than_its_module_is_not_cut(name):
    assert cut(MODULE, name) is None


def test_relative_imports_and_stars_are_not_cut():
    assert cut("from . import a\ndef f(): return a\n", "f") is None
    assert cut("from math import *\ndef f(): return sin(1)\n", "f").source == "def f(): return sin(1)\n"


@pytest.mark.parametrize(
    ("text", "stub"),
    [
        ('def f(x):\n    """Doc."""\n    return x\n', 'def f(x):\n    """Doc."""\n    raise NotImplementedError\n'),
        ("def f(x):\n    y = x\n    return y\n\nz = 1\n", "def f(x):\n    raise NotImplementedError\n\nz = 1\n"),
        ("def f(\n    x,\n):\n    return (\n        x\n    )\n", "def f(\n    x,\n):\n    raise NotImplementedError\n"),
        (
            'def f(x):\n    """One\n    two."""\n    # gone\n    return x',
            'def f(x):\n    """One\n    two."""\n    raise NotImplementedError',
        ),
        ("def f(x): return x\n", None),
        ("x = 1\n", None),
    ],
)
def test_a_body_is_taken_out_and_the_docstring_stays(text, stub):
    assert without_body(text, "f") == stub


def test_the_innermost_statement_of_a_line_is_made_to_raise():
    text = "def f(x):\n    if x:\n        y = [\n            1,\n        ]\n    return x\n"
    assert crash_at(text, 4) == "def f(x):\n    if x:\n        raise RuntimeError\n    return x\n"
    assert crash_at(text, 6) == text.replace("return x", "raise RuntimeError")
    assert crash_at(text, 2) == "def f(x):\n    raise RuntimeError\n    return x\n"
    assert crash_at(text, 99) == text
