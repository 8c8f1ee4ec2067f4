"""Which calls are expected of, shown, and kept hidden."""

from __future__ import annotations

import pytest

from palestra.forge.code.record import Refused
from palestra.forge.code.suites import FEWEST, Call, choose, constants_of, diverse, stable, unwritten
from palestra.verify.calls import CallRun, Result

SOURCE = (
    "def f(x):\n    if x < 0:\n        raise ValueError('negative')\n    if x > 9:\n        raise Odd\n    return x\n"
)


def run(*results):
    return CallRun(tuple(results))


def test_only_what_is_stable_and_promised_is_expected():
    args = ["1", "2", "3", "4", "5", "6", "7", "8"]
    first = run(
        Result("1"), Result("2"), Result("[3]", iterates=True), Result(error="ValueError"), Result(error="KeyError"),
        Result(unsuitable="a lambda"), Result("7", mutates=True), Result("'" + "x" * 2000 + "'"),
    )  # fmt: skip
    other = run(Result("1"), Result("3"), *first.results[2:])
    found = stable(args, [first, other], "Docs name LookupError.", SOURCE)
    assert found == [Call("1", "1"), Call("3", "iter([3])"), Call("4", "raises(ValueError)")]
    named = stable(["5"], [run(Result(error="KeyError"))], "Raises KeyError.", SOURCE)
    assert named == [Call("5", "raises(KeyError)")]


def test_reasons_to_raise_are_told_apart_by_the_mutants_that_miss_them():
    calls = [
        Call("-1", "raises(ValueError)"),
        Call("-2", "raises(ValueError)"),
        Call("10", "raises(Odd)"),
        Call("1", "1"),
    ]
    wrong = [frozenset({0, 1}), frozenset({2}), frozenset({3})]
    assert unwritten(calls, wrong, "") == [[0, 1], [2]]
    assert unwritten(calls, wrong, "It raises ValueError.") == [[2]]


def calls_of(*expected):
    return [Call(str(place), text) for place, text in enumerate(expected)]


def test_hidden_calls_tell_every_mutant_and_are_not_shown():
    calls = calls_of(*(str(n % 5) for n in range(30)))
    wrong = [frozenset({n, n + 1}) for n in range(2, 12, 2)] + [frozenset({29})]
    suite = choose(calls, wrong, [calls[0], calls[1]], "")
    hidden = {call.args for call in suite.hidden}
    assert not hidden & {call.args for call in suite.shown} and "29" in hidden
    assert (suite.killed, suite.mutants) == (6, 6)
    assert len(suite.hidden) >= FEWEST


def test_a_mutant_that_only_examples_tell_counts_as_not_told():
    calls = calls_of(*(str(n % 5) for n in range(30)))
    wrong = [frozenset({0})] + [frozenset({n}) for n in range(1, 6)]
    with pytest.raises(Refused, match="tell fewer than 90%"):
        choose(calls, wrong, [calls[0]], "")
    suite = choose(calls, wrong, [], "", show=0)
    assert (suite.killed, suite.mutants, suite.strength) == (6, 6, 1.0)


def test_a_call_that_alone_tells_a_mutant_is_hidden_and_not_shown():
    calls = calls_of(*(str(n % 5) for n in range(20)))
    wrong = [frozenset({7}), frozenset({8, 9, 10}), frozenset({8, 11})]
    suite = choose(calls, wrong, [], "", show=2)
    assert "7" in {call.args for call in suite.hidden} and suite.killed == 3


def test_one_case_of_each_unwritten_reason_is_shown_and_others_may_be_hidden():
    calls = calls_of(*(str(n % 5) for n in range(20)), *["raises(ValueError)"] * 3)
    wrong = [frozenset({20, 21, 22}), frozenset({1}), frozenset({2})]
    suite = choose(calls, wrong, [], "")
    shown = [call for call in suite.shown if call.expected.startswith("raises")]
    hidden = [call for call in suite.hidden if call.expected.startswith("raises")]
    assert [call.args for call in shown] == ["20"] and hidden and "20" not in {call.args for call in hidden}


def test_what_stands_in_the_agents_files_is_not_hidden():
    calls = [Call(f"'word{n}{n}'", f"'result{n % 4}'") for n in range(20)]
    visible = "TABLE = {'word33': 1}\n# 'result2'"
    suite = choose(calls, [frozenset({n}) for n in (4, 5)], [], "", visible=visible, show=0)
    assert all("word33" not in call.args and "result2" not in call.expected for call in suite.hidden)


@pytest.mark.parametrize("expected", [["1"] * 20, ["1", "2"] * 10, [str(n) for n in range(5)]])
def test_too_few_or_too_much_alike_are_refused(expected):
    with pytest.raises(Refused, match="fewer than 8 different hidden calls"):
        choose(calls_of(*expected), [], [], "")


def test_no_outcome_is_most_of_the_hidden_calls():
    calls = calls_of(*["True"] * 15, *[str(n) for n in range(9)])
    assert len({call.expected for call in diverse(calls, 12, 0)}) == 10
    suite = choose(calls, [frozenset({15, 0}), frozenset({16, 1}), frozenset({17, 2, 3})], [], "", show=0)
    assert 2 * sum(call.expected == "True" for call in suite.hidden) <= len(suite.hidden)


def test_constants_that_nobody_could_guess():
    source = "def f(x):\n    '''Doc with magic words.'''\n    return ('octopus', 7919, 2, 'ab', 1.5, 365.25)[x]\n"
    assert constants_of(source, "f") == {"octopus", "7919", "365.25"}
