"""Expectations as text: Python literals, and a few names for what literals cannot say. Read, never evaluated.

[1, (2.5, None)]   {'a': {1, 2}}   frozenset({1})   nan   -inf   1+2j
array([[1, 2]], dtype='int64')   float64(1.5)          numpy arrays and scalars
OrderedDict({'a': 1})   deque([1])   range([0, 1, 2])   known relatives of plain types, by their content
Point(x=1, y=2)   Decimal('1.50')                       objects by declared fields; by their text
iter([1, 2])   first([1, 2])                            an iterator of exactly these; one that starts so
raises(ValueError)                                      that exception or a more special one
"""

from __future__ import annotations

import ast
import math
from typing import Any

from palestra.verify.inside.wire import KIN, TEXTS
from palestra.verify.values import Array, Kin, Produced, Raised, Record

CONSTANTS = {"nan": math.nan, "inf": math.inf}
MAX_TEXT = 1 << 20


class BadExpectation(ValueError):
    """Text that is no expectation; the message says what is wrong with it."""


def read(text: str) -> Any:
    """The value that ``text`` describes. Raises BadExpectation."""
    if len(text) > MAX_TEXT:
        raise BadExpectation(f"longer than {MAX_TEXT} characters")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except BadExpectation:
        raise
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise BadExpectation(f"not an expectation: {type(error).__name__}: {error}") from None


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and node.value is not Ellipsis:
        return node.value
    if isinstance(node, ast.Name) and node.id in CONSTANTS:
        return CONSTANTS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _number(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return _complex(node)
    if isinstance(node, ast.Dict):
        keys = [key for key in node.keys if key is not None]
        return {_value(key): _value(value) for key, value in zip(keys, node.values, strict=True)}
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        items = [_value(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items) if isinstance(node, ast.Tuple) else set(items)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _named(node.func.id, node)
    raise BadExpectation(f"{ast.unparse(node)[:40]!r} is no value")


def _number(node: ast.expr) -> Any:
    value = _value(node)
    if type(value) not in (int, float, complex):
        raise BadExpectation(f"a sign before {type(value).__name__}")
    return value


def _complex(node: ast.BinOp) -> complex:
    real, imag = _number(node.left), _number(node.right)
    if type(real) is complex or type(imag) is not complex:
        raise BadExpectation("a sum that is no complex number")
    return complex(real, imag.imag if isinstance(node.op, ast.Add) else -imag.imag)


def _named(name: str, node: ast.Call) -> Any:
    if name == "raises":
        return Raised((ast.unparse(*node.args),))
    args = [_value(arg) for arg in node.args]
    fields = tuple((word.arg or "", _value(word.value)) for word in node.keywords)
    if name == "array":
        return _array(*args, **dict(fields))
    if fields or not args:
        return set() if (name, fields) == ("set", ()) else _record(name, args, fields)
    if name in ("set", "frozenset"):
        return set(*args) if name == "set" else frozenset(*args)
    if name in ("iter", "first"):
        return Produced(tuple(*args), ended=name == "iter")
    if name == "complex":
        return complex(*args)
    if name in TEXTS:
        return Record(name, (("text", *args),))
    if name in KIN or name.strip("_")[-1:].isdigit() or name in ("bool_", "str_", "bool"):
        return Kin(name, *args)
    raise BadExpectation(f"{name}(…) is no known value; give the fields of a class by name: {name}(field=value)")


def _record(name: str, args: list[Any], fields: tuple[tuple[str, Any], ...]) -> Any:
    if args:
        raise BadExpectation(f"{name}(…): every field must have its name")
    return frozenset() if name == "frozenset" else Record(name, fields)


def _array(nested: Any, dtype: str) -> Array:
    shape, items = [], [nested]
    while items and isinstance(items[0], list):
        if any(type(item) is not list or len(item) != len(items[0]) for item in items):
            raise BadExpectation("an array with rows of different lengths")
        shape.append(len(items[0]))
        items = [inner for item in items for inner in item]
    return Array(dtype, tuple(shape), tuple(items))
