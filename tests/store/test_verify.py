"""verify finds each kind of damage, one test a kind; what it is silent about is whole."""

import sqlite3
from dataclasses import replace

import pytest

from palestra.errors import StoreError
from palestra.store import Store
from palestra.store.columns import pack_floats, pack_ints
from palestra.types import Completion, Turn
from tests.store.samples import group


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "palestra.db"
    with Store.open(made, create=True) as store:
        run = store.begin_run("r", "rl", {})
        store.append(run, [group("a"), group("b", seed=1)])
        store.commit_checkpoint(run, 1, "p", "s", ["a"])
        assert store.verify() == []
    return made


def damaged(path, sql, *values):
    with sqlite3.connect(path) as raw:
        assert raw.execute(sql, values).rowcount > 0
    with Store.open(path) as store:
        return store.verify()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("update nodes set ids = x'42' where \"group\" = 1 and node = 1", "token node 1: ids has 0 bytes, expected 6"),
        ('update nodes set count = 7 where "group" = 1 and node = 1', "token node 1: ids has 6 bytes, expected 7"),
        ('update nodes set parent = 99 where "group" = 1 and node = 1', "hangs on node 99, which is missing"),
        ('update nodes set parent = 1 where "group" = 1 and node = 1', "token node 1 is its own ancestor"),
        ('update nodes set is_sampled = 0 where "group" = 1 and node = 1', "token node 1 is not what its hash says"),
        ('update nodes set logprobs = null where "group" = 1 and node = 1', "token node 1 is not what its hash"),
        ("update trajectories set turns = '[]' where seq = 1", "its turns cannot be read"),
        ("update trajectories set turns = 'x' where seq = 1", "its turns cannot be read"),
        ("update trajectories set turns = '[[0, 77, \"stop\"]]' where seq = 1", "ends on a token node that is missing"),
        ("update trajectories set tokens = 3 where seq = 1", "its trajectories are not what its hash says"),
        ("update trajectories set status = 'truncated' where seq = 1", "its trajectories are not what its hash says"),
        ("update trajectories set score = '{\"value\": 1.0}' where seq = 1", "its trajectories are not what its hash"),
        ("update trajectories set transcript = '[]' where seq = 1", "its trajectories are not what its hash says"),
        ("delete from trajectories where seq = 1", "has 2 trajectories, and was written with 3"),
        ("update groups set step = 4 where seq = 1", "its trajectories are not what its hash says"),
        ("update groups set task = 99 where seq = 1", "its task is missing"),
        ("update tasks set body = '{}'", "its content is not what its hash says"),
        ("update groups set trained_step = 2 where id = 'b'", "its run has no such checkpoint"),
        ("delete from checkpoints", "group a: is marked as trained on at step 1, and its run has no such checkpoint"),
        ("delete from groups where seq = 2", "belongs to no group"),
    ],
)
def test_damage_is_found(path, sql, said):
    found = damaged(path, sql)
    assert any(said in problem for problem in found), found


def test_another_token_or_logprob_of_the_right_length_is_found(path):
    where = ' where "group" = 1 and node = 1'
    assert damaged(path, "update nodes set ids = ?" + where, pack_ints([1, 2, 3, 4, 5, 6])) == [
        "group a: token node 1 is not what its hash says"
    ]
    assert "token node 1" in damaged(path, "update nodes set logprobs = ?" + where, pack_floats([-1.0] * 6))[0]


def test_reading_a_damaged_group_is_a_sentence(path):
    damaged(path, "update nodes set ids = x'42' where \"group\" = 1 and node = 1")
    with Store.open(path) as store, pytest.raises(StoreError, match=r"group a is damaged \(.*store verify"):
        list(store.groups(store.find_run("r").id))


def test_a_conversation_with_forks_empty_prompts_and_no_logprobs_is_whole(tmp_path):
    made = group(size=2)
    turns = (
        Turn((), Completion((), None, (), "length")),
        Turn((), Completion((5, 6, 7), None, (0, 0, 1), "stop")),
        Turn((5, 6, 9), Completion((1,), (-0.5,), (1,), "stop")),
    )
    made = replace(made, trajectories=tuple(replace(t, turns=turns) for t in made.trajectories))
    with Store.open(tmp_path / "p.db", create=True) as store:
        run = store.begin_run("r", "rl", {})
        store.append(run, [made])
        assert list(store.groups(run)) == [made]
        assert store.verify() == []
