"""Plain data as text: write it, read it back, compare it. Standard library only, so that it runs anywhere.

Plain data is None, bool, int, float, str, bytes, and list, tuple, dict, set of plain data, by exact type: a subclass
is not plain, so nothing that overrides ``__eq__`` or ``__repr__`` gets through. The reader evaluates nothing and
imports nothing: it is a small parser with a bound on length, depth and digits.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any

MAX_TEXT = 4096
MAX_DEPTH = 16
MAX_DIGITS = 308


class NotPlain(ValueError):
    """The value or text is outside plain data or its bounds; the message says how."""


def show(value: Any, depth: int = 0) -> str:
    """``value`` as text that ``read`` gives back: ``repr``, but sets sorted by (type, text) and subclasses refused.

    Raises NotPlain where the value is not plain data, or is nested deeper than MAX_DEPTH."""
    kind = type(value)
    if kind is str or kind is bool or kind is float or kind is bytes or value is None:
        return repr(value)
    if kind is int:
        if value.bit_length() > 1023:
            raise NotPlain(f"an integer of more than about {MAX_DIGITS} digits")
        return repr(value)
    if depth >= MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH}")
    if kind is list:
        return "[" + ", ".join([show(item, depth + 1) for item in value]) + "]"
    if kind is tuple:
        inner = ", ".join([show(item, depth + 1) for item in value])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if kind is dict:
        return "{" + ", ".join([f"{show(k, depth + 1)}: {show(v, depth + 1)}" for k, v in value.items()]) + "}"
    if kind is set:
        return "{" + ", ".join(sorted(show(item, depth + 1) for item in value)) + "}" if value else "set()"
    raise NotPlain(f"a value of type {kind.__module__}.{kind.__qualname__}")


_ESCAPE = r"\\(?:[\\'\"abfnrtv]|x[0-9a-fA-F]{2}|[0-3]?[0-7]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<string>[bB]?'(?:[^'\\\n]|{_ESCAPE})*'|[bB]?"(?:[^"\\\n]|{_ESCAPE})*")
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf\b|nan\b))
    | (?P<word>None\b|True\b|False\b|set\(\))
    | (?P<mark>[\[\](){{}},:])
    )""",
    re.VERBOSE,
)
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False}
_CLOSERS = {"[": "]", "(": ")", "{": "}"}


def read(text: str) -> Any:
    """The plain data that ``text`` writes. Surrounding blanks are allowed; anything else around it is not.

    Raises NotPlain on text that is no literal of plain data, or longer than MAX_TEXT, deeper than MAX_DEPTH, or with
    a number of more than MAX_DIGITS digits."""
    if len(text) > MAX_TEXT:
        raise NotPlain(f"longer than {MAX_TEXT} characters")
    tokens = _tokens(text.strip())
    value, after = _value(tokens, 0, 0)
    if after != len(tokens):
        raise NotPlain(f"text after the value: {tokens[after][1][:20]!r}")
    return value


def read_first(text: str) -> Any:
    """The first value in a list of arguments, as in ``1, [2]`` or ``'a', key=True``. Raises NotPlain as ``read``."""
    token = _TOKEN.match(text)
    if token is None or token.lastgroup is None:
        raise NotPlain(f"not a literal at {text[:20]!r}")
    depth, at = 0, 0
    while token is not None and token.lastgroup is not None:
        mark = token.group("mark")
        depth += (mark in ("[", "(", "{")) - (mark in ("]", ")", "}")) if mark else 0
        at = token.end()
        if depth == 0:
            break
        token = _TOKEN.match(text, at)
    return read(text[:at])


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise NotPlain(f"not a literal at {text[at : at + 20]!r}")
        tokens.append((match.lastgroup, match.group(match.lastgroup)))
        at = match.end()
    return tokens


def _value(tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[Any, int]:
    if at >= len(tokens):
        raise NotPlain("the text ends where a value should stand")
    group, text = tokens[at]
    if group == "string":
        return _string(text), at + 1
    if group == "number":
        return _number(text), at + 1
    if group == "word":
        return (set() if text == "set()" else _WORDS[text]), at + 1
    if text not in _CLOSERS:
        raise NotPlain(f"{text!r} where a value should stand")
    if depth >= MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH}")
    return _container(tokens, at, depth + 1)


def _container(tokens: list[tuple[str, str]], at: int, depth: int) -> tuple[Any, int]:
    opener = tokens[at][1]
    closer = _CLOSERS[opener]
    at += 1
    items: list[Any] = []
    pairs: list[tuple[Any, Any]] = []
    comma = True
    while _mark(tokens, at) != closer:
        if not comma:
            raise NotPlain("a comma is missing")
        item, at = _value(tokens, at, depth)
        if opener == "{" and _mark(tokens, at) == ":":
            value, at = _value(tokens, at + 1, depth)
            pairs.append((item, value))
        else:
            items.append(item)
        comma = _mark(tokens, at) == ","
        at += comma
    return _build(opener, items, pairs, comma), at + 1


def _mark(tokens: list[tuple[str, str]], at: int) -> str:
    if at >= len(tokens):
        raise NotPlain("a bracket is not closed")
    return tokens[at][1] if tokens[at][0] == "mark" else ""


def _build(opener: str, items: list[Any], pairs: list[tuple[Any, Any]], comma: bool) -> Any:
    if opener == "[":
        return items
    if opener == "(":
        return items[0] if len(items) == 1 and not comma else tuple(items)
    if items and pairs:
        raise NotPlain("half a set, half a dict")
    try:
        return set(items) if items else dict(pairs)
    except TypeError as error:
        raise NotPlain(str(error)) from None


def _string(text: str) -> Any:
    if "\\" not in text and text[0] not in "bB":
        return text[1:-1]
    try:
        return ast.literal_eval(text)  # one string token with known escapes: nothing here can nest or warn
    except (SyntaxError, ValueError) as error:
        raise NotPlain(f"a malformed string: {error}") from None


def _number(text: str) -> Any:
    if len(text) > MAX_DIGITS + 2:
        raise NotPlain(f"a number of more than {MAX_DIGITS} digits")
    is_float = not text.lstrip("+-").lower().startswith("0x") and any(mark in text for mark in ".eEn")
    try:
        return float(text) if is_float else int(text, 0)
    except ValueError:
        raise NotPlain(f"not a number: {text!r}") from None


def same(left: Any, right: Any, rel_tol: float = 0.0) -> bool:
    """Whether two pieces of plain data are equal, by type and value.

    True is not 1, 1 is not 1.0, a list is not a tuple. The order of a dict or set does not count. NaN equals NaN.
    Floats: with ``rel_tol`` 0 they must be the same number, −0.0 and 0.0 being two; otherwise
    |left − right| <= rel_tol · max(|left|, |right|). Keys of dicts and members of sets are always compared exactly."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return _same_float(left, right, rel_tol)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(same(a, b, rel_tol) for a, b in zip(left, right, strict=True))
    if isinstance(left, dict):
        ours, theirs = ({show(key): value for key, value in side.items()} for side in (left, right))
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key], rel_tol) for key in ours)
    if isinstance(left, set):
        return {show(item) for item in left} == {show(item) for item in right}
    return bool(left == right)


def _same_float(left: float, right: float, rel_tol: float) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    if rel_tol > 0:
        return math.isclose(left, right, rel_tol=rel_tol)
    return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
