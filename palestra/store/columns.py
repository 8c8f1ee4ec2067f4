"""Bulk arrays as bytes: little-endian, the narrowest type that holds them, zstd where it shrinks them.

The first byte is the array's type code, with 0x80 set when the rest is compressed.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

import zstandard

COMPRESSED = 0x80
WORTH_TRYING = 256
"""Bytes below which compressing costs more than it saves."""

_squeeze = zstandard.ZstdCompressor(level=3)
_expand = zstandard.ZstdDecompressor()


def pack_ints(values: Sequence[int]) -> bytes:
    """Non-negative integers below 2⁶⁴; a run of one value as a single (count, value) pair."""
    if values and values[0] >= 0 and all(value == values[0] for value in values):
        return b"=" + _body("Q", (len(values), values[0]))
    top = max(values, default=0)
    code = "B" if top < 1 << 8 else "H" if top < 1 << 16 else "I" if top < 1 << 32 else "Q"
    return _tagged(code, _body(code, values))


def pack_floats(values: Sequence[float]) -> bytes:
    """Floats: 4 bytes each where all of them are float32 values, 8 otherwise. Exact either way, NaN and −0 included."""
    singles = array("f", values)
    is_exact = all(a == b or (a != a and b != b) for a, b in zip(singles, values, strict=True))
    code = "f" if is_exact else "d"
    return _tagged(code, _body(code, values))


def unpack(data: bytes) -> tuple[int, ...] | tuple[float, ...]:
    """The values again. Raises ValueError where the bytes are not ours."""
    code, body = chr(data[0] & ~COMPRESSED), data[1:]
    if data[0] & COMPRESSED:
        body = _expand.decompress(body)
    if code == "=":
        count, value = _array("Q", body)
        return (int(value),) * int(count)
    return tuple(_array(code, body))


def _tagged(code: str, body: bytes) -> bytes:
    if len(body) >= WORTH_TRYING:
        small = _squeeze.compress(body)
        if len(small) < len(body):
            return bytes([ord(code) | COMPRESSED]) + small
    return code.encode() + body


def _body(code: str, values: Sequence[int] | Sequence[float]) -> bytes:
    packed = array(code, values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _array(code: str, body: bytes) -> array[int] | array[float]:
    packed: array[int] | array[float] = array(code)
    packed.frombytes(body)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed
