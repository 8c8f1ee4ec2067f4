"""MinHash: the estimate is as near to the true Jaccard similarity as its error says; what is normalised away."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.gate.novelty import (
    K,
    Prints,
    code_shingles,
    error_of,
    fingerprint,
    fingerprint_of,
    jaccard,
    minhash,
    nearest_of,
    novelty,
    text_shingles,
)
from tests.bundles import task_bundle

ONE = '''
def take(n, seq):
    """First n."""
    total = []
    for i, item in enumerate(seq):
        if i >= n:
            break
        total.append(item * 2)
    return total
'''


@pytest.mark.parametrize("shared", [0, 20, 50, 90, 100])
def test_the_estimate_is_within_four_errors_of_the_truth(shared):
    one = {f"a{n}" for n in range(100)}
    other = {f"a{n}" for n in range(shared)} | {f"b{n}" for n in range(100 - shared)}
    truth = len(one & other) / len(one | other)
    estimate = jaccard(minhash(one), minhash(other))
    assert abs(estimate - truth) <= 4 * sqrt(truth * (1 - truth) / K)


def test_the_mean_error_over_many_pairs_is_the_documented_one():
    """Root mean square of (estimate − truth) over 60 random pairs, against the formula, within a third."""
    random = Random(5)
    squares, expected = [], []
    for pair in range(60):
        both = random.randrange(10, 60)
        one = {f"{pair}:{n}" for n in range(80)}
        other = {f"{pair}:{n}" for n in range(80 - both, 160 - both)}
        truth = len(one & other) / len(one | other)
        squares.append((jaccard(minhash(one), minhash(other)) - truth) ** 2)
        expected.append(error_of(truth) ** 2)
    assert sqrt(sum(squares) / sum(expected)) == pytest.approx(1, rel=1 / 3)


def test_the_signature_is_the_same_for_ever():
    """Captured once: a stored estimate can be made again on another machine."""
    assert minhash({"a", "b"})[:2] == minhash(["b", "a", "b"])[:2] == (1185003627742595720, 645118318556350743)


def test_names_texts_numbers_comments_and_docstrings_do_not_count():
    other = (
        ONE.replace("total", "t")
        .replace("* 2", "* 3")
        .replace("First n.", "Other")
        .replace("    for", "  # x\n    for")
    )
    assert code_shingles(other) == code_shingles(ONE)
    assert code_shingles(ONE.replace("append", "extend")) != code_shingles(ONE)
    assert code_shingles(ONE.replace("enumerate", "reversed")) != code_shingles(ONE)
    assert code_shingles(ONE.replace(">=", ">")) != code_shingles(ONE)


def test_a_small_change_stays_near_and_another_function_is_far():
    near = ONE.replace("break", "return total")
    far = "def f(a):\n    return {k: sorted(v) for k, v in a.items() if k.startswith('x')}\n"
    prints = [fingerprint(name, "", [source]) for name, source in (("a", ONE), ("b", near), ("c", far))]
    nearest = nearest_of(prints[0], prints[1:])
    assert nearest["nearest"] == "b" and 0.6 < nearest["jaccard"] < 1
    assert nearest["jaccard"] == jaccard(prints[0].code, prints[1].code)
    assert nearest["error"] == pytest.approx(error_of(nearest["jaccard"]), abs=1e-4)
    assert nearest_of(prints[2], prints[:2])["jaccard"] < 0.3


def test_bundles_without_code_go_by_their_text():
    words = "write a function that counts the vowels in a line of text and returns the count"
    prints = [fingerprint("a", words, []), fingerprint("b", words.upper() + "!", []), fingerprint("c", "sum two", [])]
    assert nearest_of(prints[0], prints[1:])["nearest"] == "b"
    assert nearest_of(prints[0], prints[1:])["jaccard"] == 1.0
    assert nearest_of(fingerprint("d", "", []), prints) is None and nearest_of(prints[0], []) is None


def test_of_two_alike_the_later_by_name_is_refused(tmp_path):
    paths = [task_bundle(tmp_path / name, gold=ONE) for name in ("a", "b")]
    prints = Prints(paths)
    assert novelty(paths[0], prints, 0.9).passed
    refused = novelty(paths[1], prints, 0.9)
    assert not refused.passed and "near copy of a " in refused.evidence and refused.facts["jaccard"] == 1.0
    other = task_bundle(tmp_path / "c", gold="def f(a):\n    return {k: sorted(v) for k, v in a.items()}\n")
    assert novelty(other, Prints([*paths, other]), 0.9).passed


def test_nothing_is_like_nothing():
    assert minhash([]) is None and jaccard(None, minhash({"a"})) is None
    assert text_shingles("… 12 !") == set() and code_shingles("") == set()


def test_a_bundle_on_disk(tmp_path):
    (tmp_path / "solution/source").mkdir(parents=True)
    (tmp_path / "instruction.md").write_text("take the first n")
    (tmp_path / "solution/source/m.py").write_text(ONE + "\n\ndef other(a):\n    return a\n")
    (tmp_path / "solution/source/data.bin").write_bytes(b"\0\1")
    (tmp_path / "solution/source/broken.py").write_text("def take(:\n")
    (tmp_path / "solution/solve.sh").write_text("exit 0\n")
    alone = fingerprint_of(tmp_path, "take")
    assert alone.code == minhash(code_shingles(ONE)) and alone.text == minhash(text_shingles("take the first n"))
    assert fingerprint_of(tmp_path, "absent").code is None
    assert fingerprint_of(tmp_path).code not in (None, alone.code)


@settings(max_examples=60)
@given(st.sets(st.text(max_size=5), min_size=1, max_size=20), st.sets(st.text(max_size=5), min_size=1, max_size=20))
def test_laws(one, other):
    a, b = minhash(one), minhash(other)
    assert jaccard(a, b) == jaccard(b, a) and 0 <= jaccard(a, b) <= 1 and jaccard(a, a) == 1
    # The union's signature is the least of both, place by place.
    assert minhash(one | other) == tuple(map(min, a, b))


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_any_text_has_shingles(text):
    assert isinstance(code_shingles(text), set) and isinstance(text_shingles(text), set)
