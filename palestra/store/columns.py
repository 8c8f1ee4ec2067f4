"""Bulk arrays as bytes. Packed: a type code, then little-endian values in the narrowest type that holds them all, so
equal values always pack to equal bytes and a hash over them can be derived again. Stored: packed, and zstd where that
is shorter (type code with 0x80 set), so a hash does not depend on the compressor.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence

import zstandard

COMPRESSED = 0x80
WORTH_TRYING = 256
"""Bytes below which compressing costs more than it saves."""
UNSIGNED = (("B", 1 << 8), ("H", 1 << 16), ("I", 1 << 32), ("Q", 1 << 64))

_squeezer = zstandard.ZstdCompressor(level=3)
_expander = zstandard.ZstdDecompressor()


def pack_ints(values: Sequence[int]) -> bytes:
    """Integers in [−2⁶³, 2⁶⁴) (below 2⁶³ where one is negative); a run of one value as a (count, value) pair.

    Raises ValueError outside that range.
    """
    if not values:
        return b"B"
    low, high = min(values), max(values)
    if low == high and low >= 0:
        return _packed("=", "Q", (len(values), low))
    code = "q" if low < 0 else next((code for code, end in UNSIGNED if high < end), "Q")
    return _packed(code, code, values)


def pack_floats(values: Sequence[float]) -> bytes:
    """Floats: 4 bytes each where all of them are float32 values, 8 otherwise. Exact either way, NaN and −0 included."""
    singles = array("f", values)
    is_exact = singles.tolist() == list(values) or all(
        a == b or (a != a and b != b) for a, b in zip(singles, values, strict=True)
    )
    return _packed("f", "f", values) if is_exact else _packed("d", "d", values)


def unpack(packed: bytes, count: int) -> tuple[int, ...] | tuple[float, ...]:
    """The ``count`` values again. Raises ValueError where the bytes do not hold just so many."""
    code, body = packed[:1].decode("latin-1"), packed[1:]
    if code == "=":
        times, value = _array("Q", body, 2)
        if times != count:
            raise ValueError(f"holds {times} values, expected {count}")
        return (int(value),) * count
    if code not in ("B", "H", "I", "Q", "q", "f", "d"):
        raise ValueError(f"has the unknown type code {code!r}")
    return tuple(_array(code, body, count))


def squeeze(packed: bytes) -> bytes:
    """Packed to stored."""
    if len(packed) > WORTH_TRYING:
        small = _squeezer.compress(packed[1:])
        if len(small) < len(packed) - 1:
            return bytes([packed[0] | COMPRESSED]) + small
    return packed


def expand(stored: bytes) -> bytes:
    """Stored to packed. Raises ValueError where the bytes are not ours."""
    if not stored or not stored[0] & COMPRESSED:
        return stored
    try:
        return bytes([stored[0] & ~COMPRESSED]) + _expander.decompress(stored[1:])
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"does not decompress: {error}") from None


def _packed(tag: str, code: str, values: Sequence[int] | Sequence[float]) -> bytes:
    try:
        made = array(code, values)
    except OverflowError:
        raise ValueError("holds an integer outside 64 bits") from None
    if sys.byteorder == "big":
        made.byteswap()
    return tag.encode() + made.tobytes()


def _array(code: str, body: bytes, count: int) -> array[int] | array[float]:
    made: array[int] | array[float] = array(code)
    if len(body) != count * made.itemsize:
        raise ValueError(f"has {len(body)} bytes, expected {count * made.itemsize}")
    made.frombytes(body)
    if sys.byteorder == "big":
        made.byteswap()
    return made
