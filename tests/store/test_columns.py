"""Bulk columns: every value comes back bit for bit, in as few bytes as its type needs, and damage is told."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.store.columns import COMPRESSED, expand, pack_floats, pack_ints, squeeze, unpack


def bits(values: Sequence[float]) -> list[bytes]:
    """As IEEE 754, so that 0 is not −0; every NaN as one, as its payload means nothing."""
    return [struct.pack("<d", math.nan if math.isnan(value) else value) for value in values]


@pytest.mark.parametrize(
    ("values", "code", "size"),
    [
        ((), "B", 1),
        ((0, 255), "B", 3),
        ((0, 256), "H", 5),
        ((1, 65535), "H", 5),
        ((1, 65536), "I", 9),
        ((1, 2**32 - 1), "I", 9),
        ((1, 2**32), "Q", 17),
        ((1, 2**63), "Q", 17),
        ((1, 2**64 - 1), "Q", 17),
        ((-1, 2**63 - 1), "q", 17),
        ((-(2**63), 0), "q", 17),
        ((-3, -3), "q", 17),
        ((0,) * 1000, "=", 17),
        ((2**64 - 1,) * 7, "=", 17),
        (tuple(range(256)) * 40, "B", 10241),
    ],
)
def test_integers_take_the_narrowest_type_and_come_back(values: tuple[int, ...], code: str, size: int) -> None:
    packed = pack_ints(values)
    assert (packed[:1].decode(), len(packed)) == (code, size)
    back = unpack(packed, len(values))
    assert back == values and all(type(value) is int for value in back)


@pytest.mark.parametrize("values", [(0, 2**64), (-1, 2**63), (-(2**63) - 1, 0), (2**64, 2**64)])
def test_integers_beyond_64_bits_are_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="outside 64 bits"):
        pack_ints(values)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ((), "f"),
        ((-0.5, 0.0, -0.0, 1.5), "f"),
        ((math.nan, math.inf, -math.inf), "f"),
        ((-0.1, -0.5), "d"),  # 0.1 is no float32
        ((1e300, 0.0), "d"),  # beyond float32's range
        ((5e-324, 1.0), "d"),  # below it
        ((math.nan, 0.1, -0.0), "d"),
        ((struct.unpack("f", struct.pack("f", 0.1))[0],) * 3, "f"),
    ],
)
def test_floats_are_exact_and_take_four_bytes_where_that_is_exact(values: tuple[float, ...], code: str) -> None:
    packed = pack_floats(values)
    assert packed[:1].decode() == code
    assert len(packed) == 1 + len(values) * struct.calcsize(code)
    assert bits(unpack(packed, len(values))) == bits(values)


@settings(max_examples=200)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300), max_size=40))
def test_any_integers_survive_the_way_to_disk(values: list[int]) -> None:
    assert unpack(expand(squeeze(pack_ints(values))), len(values)) == tuple(values)


@settings(max_examples=200)
@given(st.lists(st.floats() | st.floats(width=32), max_size=40))
def test_any_floats_survive_the_way_to_disk(values: list[float]) -> None:
    assert bits(unpack(expand(squeeze(pack_floats(values))), len(values))) == bits(values)


def test_a_long_column_is_compressed_only_where_that_is_shorter() -> None:
    repeated = pack_ints([1, 2, 3, 4] * 5000)
    noise = pack_ints(list(random.Random(0).randbytes(20_000)))
    assert squeeze(repeated)[0] == repeated[0] | COMPRESSED and len(squeeze(repeated)) < len(repeated) / 50
    assert squeeze(noise) == noise
    assert expand(squeeze(repeated)) == repeated and expand(squeeze(noise)) == noise


def test_equal_values_pack_to_equal_bytes_whatever_holds_them() -> None:
    """A hash is taken over packed bytes: lists, tuples and the way the values were made must not show in them."""
    assert pack_ints([1, 2, 300]) == pack_ints((1, 2, 300)) == pack_ints(list(unpack(pack_ints((1, 2, 300)), 3)))
    assert pack_floats([0.5, 1]) == pack_floats((0.5, 1.0))


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"B",
        b"B\x01",
        b"B\x01\x02\x03",
        b"H\x01\x02\x03",
        b"=" + struct.pack("<QQ", 3, 7),
        b"=" + struct.pack("<Q", 2),
        b"x\x01\x02",
        b"\xc2notzstd",
        b"\xc2",
        squeeze(pack_ints([1, 2, 3, 4] * 5000))[:-5],
    ],
)
def test_damaged_bytes_are_told(damaged: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack(expand(damaged), 2)


def test_a_compressed_column_of_another_length_is_told() -> None:
    with pytest.raises(ValueError, match="has 20000 bytes, expected 20001"):
        unpack(expand(squeeze(pack_ints([1, 2, 3, 4] * 5000))), 20_001)
