"""Names and seeds as pure functions of what they are for, so that a resumed run makes the same ones."""

from __future__ import annotations

import hashlib


def stable_seed(*parts: object) -> int:
    """A 63-bit seed from the texts of ``parts``; differing parts give independent seeds."""
    return int.from_bytes(_digest(parts)[:8], "little") >> 1


def stable_id(*parts: object) -> str:
    """A 16-digit hexadecimal name from the texts of ``parts``."""
    return _digest(parts)[:8].hex()


def _digest(parts: tuple[object, ...]) -> bytes:
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
