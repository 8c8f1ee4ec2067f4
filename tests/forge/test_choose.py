"""The choice of cases: many outcomes, none of them most."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from palestra.envs.bundle import Case
from palestra.forge.code.choose import choose


def cases(outcomes, source="generated"):
    return [(Case(f"f({n})", outcome, "train", source), False) for n, outcome in enumerate(outcomes)]


@given(st.lists(st.sampled_from("aaaaaaabbbcde"), max_size=300), st.integers(1, 400))
def test_no_outcome_is_more_than_half(outcomes, wanted):
    chosen = choose(cases(outcomes), wanted, 0)
    counts = Counter(case.expected for case in chosen)
    assert len(chosen) <= wanted
    assert all(count <= len(chosen) / 2 for count in counts.values())


def test_a_rare_outcome_bounds_a_common_one():
    # 900 of a, 100 of b: the largest cap c with c <= (c + 100) / 2 is 100.
    assert Counter(case.expected for case in choose(cases("a" * 900 + "b" * 100), 1000, 0)) == {"a": 100, "b": 100}


def test_a_single_outcome_gives_nothing():
    assert choose(cases("a" * 500), 500, 0) == []


def test_many_outcomes_bound_each_to_a_fifth():
    # 400 of a and 600 others: c <= (c + 600) / 5 gives 150 of a, at most a fifth of 750.
    chosen = choose(cases(["a"] * 400 + [str(n) for n in range(600)]), 2000, 0)
    assert Counter(case.expected for case in chosen)["a"] == 150 and len(chosen) == 750


def test_repeating_the_first_argument_is_bounded():
    # 350 others allow 350 · 0.35 / 0.65 = 188 echoes.
    pairs = [(Case(f"f({n})", str(n), "train", "generated"), n < 650) for n in range(1000)]
    chosen = choose(pairs, 1000, 0)
    assert sum(int(case.expected) < 650 for case in chosen) == 188 and len(chosen) == 538


def test_doctest_cases_come_first_and_the_seed_orders_the_rest():
    pairs = cases([str(n) for n in range(100)]) + cases(["x", "y"], "doctest")
    one, again, other = (choose(pairs, 10, seed) for seed in (0, 0, 1))
    assert [case.source for case in one[:2]] == ["doctest", "doctest"]
    assert one == again != other
