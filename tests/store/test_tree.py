"""The token tree against the naive model: a list of trajectories, each with its own copy of every token."""

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
