"""Estimators."""

from __future__ import annotations

from math import comb


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The unbiased estimate of the chance that one of k samples is right, from n samples (arXiv:2107.03374):

        pass@k = 1 − C(n − c, k) / C(n, k)

    Raises ValueError when k > n: it cannot be estimated from fewer samples than k.
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise ValueError(f"pass@k needs 1 <= k <= n and 0 <= correct <= n, got k={k}, n={n}, correct={correct}")
    return 1.0 - comb(n - correct, k) / comb(n, k)
