"""Splits are a pure function of the problem's text."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from palestra.envs.splits import SHARES, split_of


@given(st.text())
def test_a_text_is_in_one_split_for_ever(text):
    assert split_of(text) == split_of(str(text)) and split_of(text) in SHARES


@given(st.lists(st.text(), max_size=200))
def test_no_text_is_in_two_splits(texts):
    by_split = {split: {text for text in texts if split_of(text) == split} for split in SHARES}
    assert sum(map(len, by_split.values())) == len(set(texts))


def test_known_texts_stay_where_they_are():
    # Bundles on disk rely on these for ever. u = the first 8 bytes of the SHA-256 as a fraction of 2^64:
    # f(1): 0x0c30.. -> 0.05, train; f(18): 0xbaa2.. -> 0.73, validation; f(2): 0xfd15.. -> 0.99, heldout
    assert [split_of(text) for text in ("f(1)", "f(18)", "f(2)")] == ["train", "validation", "heldout"]


def test_shares_are_kept():
    counts = Counter(split_of(f"f({number})") for number in range(20_000))
    # 20,000 draws: standard deviations below 65, so 300 is more than four of them.
    assert all(abs(counts[split] - share * 20_000) < 300 for split, share in SHARES.items())
