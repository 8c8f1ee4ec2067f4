from __future__ import annotations

from itertools import combinations

import pytest

from palestra.evals.metrics import pass_at_k
from palestra.intervals import Proportion, wilson


def test_wilson_against_worked_values() -> None:
    # n = 10, p = 0.5, z² = 3.8415: centre 0.5; half = z·√(0.025 + 0.0096036)/1.38415 = 1.96·0.186022/1.38415 = 0.26341
    assert wilson(5, 10) == pytest.approx((0.23659, 0.76341), abs=1e-5)
    # p = 0: centre = half = (z²/20)/1.38415 = 0.138766, so the interval is [0, 0.27753]
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)
    assert wilson(10, 10) == pytest.approx((0.72247, 1.0), abs=1e-5)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_what_is_no_proportion(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, trials)


def test_pass_at_k_is_the_share_of_subsets_with_a_right_one() -> None:
    n, correct = 6, 2
    right = [True] * correct + [False] * (n - correct)
    for k in range(1, n + 1):
        subsets = list(combinations(right, k))
        assert pass_at_k(n, correct, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_needs_k_samples() -> None:
    with pytest.raises(ValueError, match="k <= n"):
        pass_at_k(4, 1, 8)


def test_a_proportion_says_all_of_it() -> None:
    assert Proportion(1, 4).to_plain() == {
        "acc": 0.25,
        "lo": pytest.approx(0.04559, abs=1e-4),
        "hi": pytest.approx(0.69936, abs=1e-4),
        "n": 4,
    }
