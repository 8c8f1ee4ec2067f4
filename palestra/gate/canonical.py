"""One text for one value: canonical JSON after RFC 8785, so that a signature is about the value and not its spelling.

keys      sorted by their UTF-16 code units
blanks    none
texts     UTF-8; only ``"``, ``\\`` and control characters are escaped, in the shortest way
numbers   as ECMAScript writes them: the shortest digits that read back as the same double; 1.0 is ``1``, −0.0 is ``0``,
          1e21 is ``1e+21``, 1e-7 is ``1e-7``; a whole number beyond ±(2⁵³ − 1) has no exact double, so it is refused
refused   NaN, infinities, a lone surrogate, a key that is no text, deeper nesting than MAX_DEPTH
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

MAX_DEPTH = 64
LARGEST_INT = 2**53 - 1
LARGEST_BYTES = 16 << 20

_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_ESCAPED = {code: _SHORT.get(code, f"\\u{code:04x}") for code in (*range(32), 34, 92)}


class NotCanonical(ValueError):
    """A value that has no canonical text, or a text that is not canonical."""


def canonical(value: Any) -> bytes:
    """The canonical text of plain data. Raises NotCanonical."""
    return _write(value, 0).encode()


def parse(data: bytes) -> Any:
    """The value of a JSON text, canonical or not. Raises NotCanonical, also for a key that stands twice."""
    if len(data) > LARGEST_BYTES:
        raise NotCanonical(f"has {len(data)} bytes, at most {LARGEST_BYTES} are read")
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique, parse_int=_int, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise NotCanonical(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotCanonical(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise NotCanonical(f"is nested deeper than {MAX_DEPTH}") from None
    except ValueError as error:
        raise NotCanonical(str(error)) from None


def parse_canonical(data: bytes) -> Any:
    """The value of a canonical text; one line feed may follow it. Raises NotCanonical where it is spelt otherwise."""
    value = parse(data)
    if canonical(value) != data.removesuffix(b"\n"):
        raise NotCanonical("is spelt otherwise than canonical JSON: it was changed after it was written")
    return value


def _write(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise NotCanonical(f"is nested deeper than {MAX_DEPTH}")
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            if abs(value) > LARGEST_INT:
                raise NotCanonical(f"the number {str(value)[:20]} is beyond ±(2^53 - 1): write it as a text")
            return str(int(value))
        case float():
            return number(value)
        case str():
            return text(value)
        case list() | tuple():
            return f"[{','.join(_write(item, depth + 1) for item in value)}]"
        case dict():
            keys = sorted((_key(key) for key in value), key=lambda key: key.encode("utf-16-be", "surrogatepass"))
            return "{" + ",".join(f"{text(key)}:{_write(value[key], depth + 1)}" for key in keys) + "}"
    raise NotCanonical(f"a {type(value).__name__} is no JSON value")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise NotCanonical(f"the key {key!r} is no text")
    return key


def text(value: str) -> str:
    """A text in quotes. Raises NotCanonical for a lone surrogate, which UTF-8 cannot say."""
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise NotCanonical(f"the text {value[:40]!a} holds a lone surrogate")
    return f'"{value.translate(_ESCAPED)}"'


def number(value: float) -> str:
    """A double as ECMAScript's ``Number.prototype.toString`` writes it."""
    if not math.isfinite(value):
        raise NotCanonical(f"{value} is no JSON number")
    if value == 0:
        return "0"
    digits, point = _digits(abs(value))
    sign = "-" if value < 0 else ""
    if 0 < point <= 21:
        whole = digits.ljust(point, "0")
        return sign + whole[:point] + ("." + whole[point:] if len(whole) > point else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{point - 1:+d}"


def _digits(value: float) -> tuple[str, int]:
    """The shortest decimal digits d and the place p of the point, so that the value is 0.d · 10^p."""
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:e([+-]\d+))?", repr(float(value)))
    assert found is not None
    whole, fraction, exponent = found[1], found[2] or "", int(found[3] or 0)
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    return digits.rstrip("0"), len(whole) - leading + exponent


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return made


def _int(digits: str) -> int | float:
    """A whole number that a double holds exactly as an int, any other as the double that it stands for."""
    return int(digits) if len(digits) <= 17 and abs(int(digits)) <= LARGEST_INT else float(digits)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
