"""The store against a list: what is appended is what is read."""

import sqlite3
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palestra.errors import StoreError
from palestra.store import Store
from palestra.types import Completion, Group, Turn
from tests.store import samples
from tests.store.samples import group


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "palestra.db", create=True) as opened:
        yield opened


@pytest.fixture
def run(store):
    return store.begin_run("rl", "rl", {"seed": 0})


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_groups_come_back_equal_and_in_order(tmp_path_factory, data):
    ids = [f"g{at}" for at in range(data.draw(st.integers(0, 5)))]
    made = [data.draw(samples.groups(id)) for id in ids]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(made)), max_size=3)))
    path = tmp_path_factory.mktemp("store") / "palestra.db"
    with Store.open(path, create=True) as store:
        run = store.begin_run("r", "rollout", {})
        for start, end in zip([0, *cuts], [*cuts, len(made)], strict=True):
            store.append(run, made[start:end])
    with Store.open(path) as store:
        assert list(store.groups(run)) == made
        assert [t.seconds for g in store.groups(run) for t in g.trajectories] == [1.5] * sum(
            len(g.trajectories) for g in made
        )
        for step in range(4):
            assert list(store.groups(run, step=step)) == [g for g in made if g.step == step]
        for split in ("train", "heldout"):
            assert list(store.groups(run, split=split)) == [g for g in made if g.task.split == split]
        assert store.verify() == []
        counts = store.counts()
    turns = [turn for g in made for t in g.trajectories for turn in t.turns]
    assert counts["turns"] == len(turns)
    assert counts["tokens"] == sum(len(t.prompt_ids) + len(t.completion.ids) for t in turns)


def test_a_shared_prompt_is_stored_once(store, run):
    store.append(run, [group(size=8)])
    counts = store.counts(run)
    assert (counts["tokens"], counts["tokens_stored"]) == (8 * 46, 40 + 8 * 6)
    assert (counts["groups"], counts["trajectories"], counts["trajectories_finished"]) == (1, 8, 8)


def test_a_task_is_stored_once(store, run, tmp_path):
    store.append(run, [group("a", seed=1), group("b", seed=2)])
    store.append(run, [group("c", seed=3), group("d", number=9)])
    with sqlite3.connect(tmp_path / "palestra.db") as raw:
        assert raw.execute("select count(*) from tasks").fetchone() == (2,)


def test_appending_again_changes_nothing(store, run):
    made = [group("a"), group("b", seed=1)]
    store.append(run, made)
    store.append(run, [*made, group("c", seed=2), group("c", seed=2)])
    assert [g.id for g in store.groups(run)] == ["a", "b", "c"]


def test_seconds_are_no_part_of_the_content(store, run):
    made = group()
    slower = replace(made, trajectories=tuple(replace(t, seconds=9.0) for t in made.trajectories))
    store.append(run, [made])
    store.append(run, [slower])
    assert [t.seconds for g in store.groups(run) for t in g.trajectories] == [0.0] * 3


def changed_token(made):
    first = made.trajectories[0]
    old = first.turns[0]
    sampled = old.completion
    other = replace(sampled, ids=(sampled.ids[0] ^ 1, *sampled.ids[1:]))
    return replace(made, trajectories=(replace(first, turns=(Turn(old.prompt_ids, other),)), *made.trajectories[1:]))


@pytest.mark.parametrize(
    "changed",
    [
        changed_token,
        lambda made: replace(made, step=5),
        lambda made: replace(made, trajectories=made.trajectories[:-1]),
        lambda made: group(number=4),
        lambda made: replace(made, trajectories=(replace(made.trajectories[0], error="late"), *made.trajectories[1:])),
    ],
)
def test_an_id_with_other_content_is_refused_and_nothing_is_kept(store, run, changed):
    store.append(run, [group()])
    with pytest.raises(StoreError, match="group g0: is there already, with other content"):
        store.append(run, [group("new", seed=5), changed(group())])
    with pytest.raises(StoreError, match="with other content"):
        store.append(run, [group("new", seed=5), group("new", seed=6)])
    assert list(store.groups(run)) == [group()]


def test_a_group_belongs_to_one_run(store, run):
    store.append(run, [group()])
    other = store.begin_run("other", "rl", {})
    with pytest.raises(StoreError, match=f"belongs to run {run}"):
        store.append(other, [group()])


def test_a_rollout_id_is_used_once(store, run):
    store.append(run, [group()])
    with pytest.raises(StoreError, match="rollout g0-0: its id is used already"):
        store.append(run, [replace(group(seed=1), id="g1")])
    one = group("g2").trajectories[0]
    with pytest.raises(StoreError, match="rollout g2-0: its id is used already"):
        store.append(run, [Group("g2", one.task, 0, (one, one))])
    assert store.counts()["groups"] == 1


@pytest.mark.parametrize("facts", [{"limits": (1, 2)}, {"by": {1: "a"}}, {"x": float("nan")}, {"f": {1, 2}}])
def test_facts_that_json_would_change_are_refused(store, run, facts):
    asked = replace(samples.task(), facts=facts)
    with pytest.raises(StoreError, match="group g: "):
        store.append(run, [Group("g", asked, 0, ())])


@pytest.mark.parametrize(
    ("completion", "what"),
    [
        (
            Completion((1, 2), (-1.0,), (0, 0), "stop"),
            "log-probabilities must match the sampled tokens: got 1, expected 2",
        ),
        (Completion((1, 2), None, (0,), "stop"), "versions must match the sampled tokens: got 1, expected 2"),
        (Completion((2**64,), None, (0,), "stop"), "outside 64 bits"),
    ],
)
def test_a_turn_that_contradicts_itself_is_refused(store, run, completion, what):
    made = group(size=1)
    broken = replace(made.trajectories[0], turns=(Turn((1,), completion),))
    with pytest.raises(StoreError, match=what):
        store.append(run, [replace(made, trajectories=(broken,))])
    assert store.counts()["groups"] == 0


def test_an_unknown_run_is_refused(store):
    for call in (
        lambda: store.append("nobody", [group()]),
        lambda: store.add_metrics("nobody", 0, {"x": 1.0}),
        lambda: store.commit_checkpoint("nobody", 1, "p", "s", []),
        lambda: store.end_run("nobody", "finished"),
    ):
        with pytest.raises(StoreError, match="no such run"):
            call()


def test_the_newest_run_of_a_name_and_the_nearest_name(store):
    first, second = store.begin_run("warm", "sft", {"lr": 0.1}), store.begin_run("warm", "sft", {"lr": 0.2})
    assert store.find_run("warm").id == second and store.find_run(first).config == {"lr": 0.1}
    assert [found.id for found in store.runs()] == [first, second]
    with pytest.raises(StoreError, match=r"no run 'wram'; did you mean warm\?"):
        store.find_run("wram")


def test_kinds_and_statuses_are_closed_sets(store, run):
    with pytest.raises(StoreError, match=r"kind 'rll' is unknown, did you mean rl\?"):
        store.begin_run("x", "rll", {})
    with pytest.raises(StoreError, match=r"status 'finishd' is unknown, did you mean finished\?"):
        store.end_run(run, "finishd")
    store.end_run(run, "finished")
    assert store.find_run(run).status == "finished"


def test_a_trajectory_by_the_beginning_of_its_id(store, run):
    store.append(run, [group("ab", size=2), group("Ab", size=1, seed=1), group("a%", size=1, seed=2)])
    assert store.trajectory("ab-1") == group("ab", size=2).trajectories[1]
    assert store.trajectory("Ab").id == "Ab-0"
    assert store.trajectory("a%").id == "a%-0"
    with pytest.raises(StoreError, match="more than one trajectory begins with 'ab'"):
        store.trajectory("ab")
    with pytest.raises(StoreError, match="no trajectory begins with 'zz'"):
        store.trajectory("zz")


def test_a_whole_id_wins_over_a_longer_one_that_begins_so(store, run):
    store.append(run, [group("g", size=12)])
    assert store.trajectory("g-1").index == 1


def test_a_checkpoint_spends_its_groups(store, run):
    store.append(run, [group("a"), group("b", seed=1), group("c", seed=2)])
    assert store.last_checkpoint(run) is None
    store.commit_checkpoint(run, 1, "step-1", "0" * 64, ["a", "c"], {"reward": 0.5})
    assert [g.id for g in store.groups(run, trained=True)] == ["a", "c"]
    assert [g.id for g in store.groups(run, trained=False)] == ["b"]
    assert store.metrics(run) == [(1, {"reward": 0.5})]
    store.commit_checkpoint(run, 2, "step-2", "1" * 64, ["b"])
    last = store.last_checkpoint(run)
    assert (last.step, last.path, last.sha256) == (2, "step-2", "1" * 64)
    assert [checkpoint.step for checkpoint in store.checkpoints(run)] == [1, 2]
    assert store.verify() == [] and store.counts(run)["trained_groups"] == 3


@pytest.mark.parametrize("second", [["b", "a"], ["b", "unknown"], ["b", "b"], ["b", "of another run"]])
def test_a_group_is_trained_on_once_and_a_refused_checkpoint_leaves_nothing(store, run, second):
    other = store.begin_run("other", "rl", {})
    store.append(other, [group("of another run", seed=9)])
    store.append(run, [group("a"), group("b", seed=1)])
    store.commit_checkpoint(run, 1, "step-1", "0" * 64, ["a"])
    with pytest.raises(StoreError, match="is unknown, or was trained on before; nothing was committed"):
        store.commit_checkpoint(run, 2, "step-2", "1" * 64, second, {"reward": 1.0})
    assert store.last_checkpoint(run).step == 1 and store.metrics(run) == []
    assert [g.id for g in store.groups(run, trained=False)] == ["b"]


def test_metrics_of_a_repeated_step_are_replaced(store, run):
    store.add_metrics(run, 1, {"reward": 0.1, "kl": 0.2})
    store.add_metrics(run, 0, {"reward": 0.0})
    store.add_metrics(run, 1, {"reward": 0.3, "nothing": float("nan"), "kl": float("nan")})
    assert store.metrics(run) == [(0, {"reward": 0.0}), (1, {"reward": 0.3})]


def test_reading_while_another_connection_appends(store, run, tmp_path):
    store.append(run, [group("a")])
    reading = store.groups(run)
    with Store.open(tmp_path / "palestra.db") as other:
        other.append(run, [group("b", seed=1)])
    assert [g.id for g in reading][:1] == ["a"]
    assert [g.id for g in store.groups(run)] == ["a", "b"]


def test_importing_the_store_needs_neither_torch_nor_numpy():
    code = "import sys, palestra.store; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_compacting_gives_space_back_and_changes_nothing(tmp_path):
    with Store.open(tmp_path / "s.db", create=True) as store:
        run = store.begin_run("rl", "rl", {})
        store.append(run, [group(f"g{n}", seed=n, number=n) for n in range(200)])
        kept = list(store.groups(run))
        with sqlite3.connect(tmp_path / "s.db") as other:
            other.execute("CREATE TABLE ballast AS SELECT randomblob(1 << 20) FROM runs")
            other.execute("DROP TABLE ballast")
        other.close()
        before, after = store.compact()
        assert before - after >= 1 << 20 and after == (tmp_path / "s.db").stat().st_size
        assert list(store.groups(run)) == kept and store.verify() == []
        store.append(run, [group("more", seed=1000, number=1000)])


def test_compacting_waits_for_nobody_for_ever(tmp_path):
    with Store.open(tmp_path / "s.db", create=True, busy_s=0.1) as store:
        other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store.compact()
        other.close()
