"""Which split a problem belongs to: a pure function of its text, so that no problem can be in two."""

from __future__ import annotations

import hashlib

SHARES = {"train": 0.7, "validation": 0.1, "heldout": 0.2}


def split_of(call: str) -> str:
    """The split of the canonical text ``call``: u = first 8 bytes of its SHA-256 as a fraction of 2^64, then
    train for u < 0.7, validation for u < 0.8, else heldout."""
    share = int.from_bytes(hashlib.sha256(call.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64
    below = 0.0
    for split, size in SHARES.items():
        below += size
        if share < below - 1e-12:
            return split
    return "heldout"
