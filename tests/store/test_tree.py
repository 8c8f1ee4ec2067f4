"""The token tree against the naive model: a list of trajectories, each with its own copy of every token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palestra.store.tree import ROOT, TokenTree
from palestra.types import Completion, Turn
from tests.store.samples import conversations


def turn(prompt, ids, version=0, logprob=-1.0):
    return Turn(tuple(prompt), Completion(tuple(ids), (logprob,) * len(ids), (version,) * len(ids), "stop"))


def stored(tree):
    return sum(len(node.ids) for node in tree.nodes)


@given(st.lists(conversations(), max_size=6))
def test_reads_back_what_was_added_and_stores_no_more_than_that(made):
    tree = TokenTree()
    refs = [tree.add(turns) for turns in made]
    assert [tree.turns(ref) for ref in refs] == made
    assert stored(tree) <= sum(len(turn.prompt_ids) + len(turn.completion.ids) for turns in made for turn in turns)


@given(st.lists(conversations(), max_size=4))
def test_every_node_hangs_on_the_root_and_carries_as_many_facts_as_tokens(made):
    tree = TokenTree()
    for turns in made:
        tree.add(turns)
    for at, node in enumerate(tree.nodes):
        assert tree.path(at)[-1] == at and tree.nodes[tree.path(at)[0]].parent == ROOT
        assert node.logprobs is None or len(node.logprobs) == len(node.ids)
        assert (node.versions is not None) == node.is_sampled


def test_a_prompt_is_stored_once_for_all_its_answers():
    tree = TokenTree()
    for version in range(8):
        tree.add([turn(range(30), [version] * 12, version)])
    assert stored(tree) == 30 + 8 * 12


def test_a_conversation_stores_only_what_is_new():
    first = turn([1, 2, 3], [4, 5])
    second = turn([1, 2, 3, 4, 5, 6], [7])
    tree = TokenTree()
    refs = tree.add([first, second])
    assert stored(tree) == 3 + 2 + 1 + 1
    assert tree.turns(refs) == (first, second)
    assert refs[1].prompt != refs[0].completion and tree.path(refs[1].prompt)[:2] == tree.path(refs[0].completion)


def test_a_rewritten_history_forks_at_the_first_difference():
    tree = TokenTree()
    said = turn([1, 2, 3], [4, 5, 6])
    rewritten = turn([1, 2, 3, 4, 9, 9], [7])  # the harness changed the answer from its second token on
    refs = tree.add([said, rewritten])
    assert tree.turns(refs) == (said, rewritten)
    assert stored(tree) == 3 + 3 + 2 + 1  # [1 2 3] [4] [5 6 | 9 9] [7]
    sampled = [node.ids for node in tree.nodes if node.is_sampled]
    assert sorted(sampled) == [(4,), (5, 6), (7,)]  # what the harness put there is not taken for sampled


def test_the_same_tokens_with_other_logprobs_are_another_branch():
    tree = TokenTree()
    refs = [tree.add([turn([1], [2, 3], logprob=value)]) for value in (-1.0, -2.0, -1.0)]
    assert len(tree.nodes) == 3  # the prompt and two answers: the third equals the first
    assert refs[0] == refs[2] != refs[1]


def test_a_second_turn_follows_its_own_first_turn_not_an_equal_looking_sibling():
    tree = TokenTree()
    tree.add([turn([1], [2], version=0)])
    refs = tree.add([turn([1], [2], version=1), turn([1, 2, 3], [4], version=1)])
    path = tree.path(refs[1].completion)
    assert [tree.nodes[at].versions for at in path] == [None, (1,), None, (1,)]


def test_a_sampled_segment_splits_with_its_logprobs_and_versions():
    sampled = Turn((1,), Completion((2, 3, 4, 5), (-0.1, -0.2, -0.3, -0.4), (0, 0, 1, 2), "length"))
    quoting = turn([1, 2, 3, 8], [9])
    tree = TokenTree()
    refs = tree.add([sampled]), tree.add([quoting])
    assert [tree.turns(ref) for ref in refs] == [(sampled,), (quoting,)]
    parts = {node.ids: (node.logprobs, node.versions) for node in tree.nodes if node.is_sampled}
    assert parts == {(2, 3): ((-0.1, -0.2), (0, 0)), (4, 5): ((-0.3, -0.4), (1, 2)), (9,): ((-1.0,), (0,))}
    assert sorted(node.ids for node in tree.nodes if not node.is_sampled) == [(1,), (8,)]


def test_a_prompt_splits_where_a_shorter_one_ends_and_where_a_third_differs():
    tree = TokenTree()
    made = [turn([1, 2, 3, 4], [9]), turn([1, 2], [8]), turn([1, 2, 3, 7], [6]), turn([5], [4])]
    refs = [tree.add([one]) for one in made]
    assert [tree.turns(ref) for ref in refs] == [(one,) for one in made]
    assert sorted(node.ids for node in tree.nodes if not node.is_sampled) == [(1, 2), (3,), (4,), (5,), (7,)]


def test_a_prompt_may_end_inside_what_another_sampled():
    tree = TokenTree()
    made = [turn([1], [2, 3, 4]), turn([1, 2], [3, 4])]
    refs = [tree.add([one]) for one in made]
    assert [tree.turns(ref) for ref in refs] == [(one,) for one in made]
    assert stored(tree) == 4


def test_no_logprobs_stay_none_beside_a_twin_that_has_them():
    bare = Turn((1,), Completion((2, 3), None, (0, 0), "stop"))
    inside = Turn((1, 2), Completion((3,), None, (0,), "stop"))
    tree = TokenTree()
    made = [bare, turn([1], [2, 3]), inside]
    refs = [tree.add([one]) for one in made]
    assert [tree.turns(ref) for ref in refs] == [(one,) for one in made]


@pytest.mark.parametrize("logprobs", [(), None])
def test_nothing_sampled_is_kept_as_it_was(logprobs):
    empty = Completion((), logprobs, (), "cancelled")
    made = [Turn((1, 2), empty), Turn((1, 2, 3), empty), Turn((1, 2, 3), turn([], [4]).completion), Turn((), empty)]
    tree = TokenTree()
    assert tree.turns(tree.add(made)) == tuple(made)


@pytest.mark.parametrize(
    ("logprobs", "versions"), [((-0.1,), (0, 0)), ((-0.1, -0.2), (0,)), ((), ()), (None, (0,) * 3)]
)
def test_lengths_that_do_not_agree_are_refused(logprobs, versions):
    tree = TokenTree()
    with pytest.raises(ValueError, match=r"must match the sampled tokens: got \d, expected 2"):
        tree.add([Turn((1,), Completion((2, 3), logprobs, versions, "stop"))])
