"""Leases: each group to one consumer, none lost, none twice, whoever dies when."""

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from palestra.errors import StoreError
from palestra.store import Store
from tests.store.samples import group, guarded

SHA = "0" * 64


def ids(taken):
    return [made.id for made in taken]


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "s.db", create=True) as opened:
        yield opened


@pytest.fixture
def run(store):
    made = store.begin_run("rl", "rl", {})
    store.append(made, [group(f"g{n}", seed=n, number=n) for n in range(5)])
    store.append(made, [group("held", seed=9, number=9, split="heldout")])
    return made


def test_the_oldest_first_and_each_to_one(store, run):
    assert ids(store.take(run, "a", most=2, lease_s=10, now=0)) == ["g0", "g1"]
    assert ids(store.take(run, "b", most=2, lease_s=10, now=1)) == ["g2", "g3"]
    assert ids(store.take(run, "a", most=9, lease_s=10, now=2)) == ["g4"]
    assert store.take(run, "b", most=9, lease_s=10, now=3) == []
    assert store.waiting(run, now=3) == {"ready": 0, "leased": 5}  # the held-out one is not for training
    assert store.waiting(run, split="heldout", now=3) == {"ready": 1, "leased": 0}
    assert ids(store.take(run, "b", most=9, lease_s=10, split="heldout", now=3)) == ["held"]


def test_what_a_lost_consumer_held_comes_back(store, run):
    store.take(run, "a", most=2, lease_s=10, now=0)
    assert ids(store.take(run, "b", most=1, lease_s=10, now=9.9)) == ["g2"]
    assert ids(store.take(run, "b", most=2, lease_s=10, now=10)) == ["g0", "g1"]
    with pytest.raises(StoreError, match="g0: is leased to b; nothing was committed"):
        store.commit_checkpoint(run, 1, "c", SHA, ["g0"], consumer="a", now=11)
    assert store.checkpoints(run) == []
    store.commit_checkpoint(run, 1, "c", SHA, ["g0", "g1"], consumer="b", now=11)
    assert store.waiting(run, now=11) == {"ready": 2, "leased": 1}


def test_a_lease_that_ran_out_is_good_until_somebody_takes_it(store, run):
    store.take(run, "a", most=1, lease_s=1, now=0)
    store.commit_checkpoint(run, 1, "c", SHA, ["g0"], consumer="a", now=100)
    assert ids(store.groups(run, trained=True)) == ["g0"]


def test_renewing_and_releasing(store, run):
    store.take(run, "a", most=2, lease_s=10, now=0)
    assert store.renew("a", lease_s=10, now=9) == 2 and store.renew("nobody", lease_s=10) == 0
    assert ids(store.take(run, "b", most=1, lease_s=10, now=18)) == ["g2"]
    assert store.release("a") == 2 and store.release("a") == 0
    assert ids(store.take(run, "b", most=9, lease_s=10, now=18)) == ["g0", "g1", "g3", "g4"]


def test_without_a_lease_nothing_of_somebody_elses_is_trained_on(store, run):
    store.take(run, "a", most=1, lease_s=10, now=0)
    with pytest.raises(StoreError, match="g0: is leased to a"):
        store.commit_checkpoint(run, 1, "c", SHA, ["g0"], now=5)
    with pytest.raises(StoreError, match="g1: is not leased to a"):
        store.commit_checkpoint(run, 1, "c", SHA, ["g0", "g1"], consumer="a", now=5)
    store.commit_checkpoint(run, 1, "c", SHA, ["g1"], now=5)
    store.commit_checkpoint(run, 2, "c", SHA, ["g0"], now=11)  # a's has run out
    assert store.verify() == []


@pytest.mark.parametrize(("most", "lease_s"), [(0, 1), (1, 0), (1, -1), (1, float("nan"))])
def test_what_cannot_be_taken(store, run, most, lease_s):
    with pytest.raises(StoreError, match="can be taken"):
        store.take(run, "a", most=most, lease_s=lease_s)


def test_an_unknown_run(store):
    with pytest.raises(StoreError, match="no such run"):
        store.take("nought", "a", most=1, lease_s=1)


def test_verify_tells_a_lease_on_what_was_trained_on(store, run, tmp_path):
    store.commit_checkpoint(run, 1, "c", SHA, ["g0"])
    with sqlite3.connect(tmp_path / "s.db") as other:
        other.execute("INSERT INTO leases SELECT seq, 'x', 1e12 FROM groups WHERE id = 'g0'")
    other.close()
    assert store.verify() == ["group g0: is leased, and was trained on already"]


def test_many_consumers_at_once(tmp_path):
    """Eight threads take and train until nothing is left: every group once."""
    with Store.open(tmp_path / "s.db", create=True) as store:
        run = store.begin_run("rl", "rl", {})
        store.append(run, [group(f"g{n}", seed=n, number=n, size=1) for n in range(60)])
    trained, errors = [], []

    def consume(name):
        try:
            with Store.open(tmp_path / "s.db") as own:
                while taken := own.take(run, name, most=3, lease_s=600):
                    own.commit_checkpoint(run, 1, name, SHA, ids(taken), consumer=name)
                    trained.extend(ids(taken))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=consume, args=(f"c{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and sorted(trained) == sorted(f"g{n}" for n in range(60))


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_schema_is_brought_to_this_one(tmp_path, version):
    with sqlite3.connect(tmp_path / "old.db") as old:
        old.executescript((Path(__file__).parent / "data" / f"v{version}.sql").read_text())
    old.close()
    with Store.open(tmp_path / "old.db") as store:
        run = store.find_run("old").id
        assert [made.id for made in store.groups(run, trained=True)] == ["a"]
        assert list(store.groups(run, trained=False)) == [group("b", number=1, seed=1)]
        assert ids(store.take(run, "a", most=9, lease_s=1)) == ["b"] and store.verify() == []
        store.append(run, [guarded(group("c", number=2, seed=2))])
        assert store.verify() == [] and list(store.groups(run))[-1].trajectories[0].protections == (
            "seccomp",
            "rlimits",
        )


class Consumers(RuleBasedStateMachine):
    """Against a model: who holds a group until when, and which were trained on."""

    names = st.sampled_from("ab")

    @initialize()
    def begin(self):
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.store = Store.open(Path(self.folder.name) / "s.db", create=True)
        self.run = self.store.begin_run("rl", "rl", {})
        self.groups = [f"g{n}" for n in range(4)]
        self.store.append(self.run, [group(id, seed=n, number=n, size=1) for n, id in enumerate(self.groups)])
        self.now, self.held, self.trained, self.step = 0.0, {}, set(), 0

    @rule(seconds=st.sampled_from([1.0, 5.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule(name=names, most=st.integers(1, 3))
    def take(self, name, most):
        free = [g for g in self.groups if g not in self.trained and self.held.get(g, ("", 0.0))[1] <= self.now]
        taken = ids(self.store.take(self.run, name, most=most, lease_s=4.0, now=self.now))
        assert taken == free[:most]
        self.held |= dict.fromkeys(taken, (name, self.now + 4.0))

    @rule(name=names)
    def release(self, name):
        own = [g for g, (holder, _) in self.held.items() if holder == name]
        assert self.store.release(name) == len(own)
        for g in own:
            del self.held[g]

    @rule(name=names, which=st.integers(0, 3))
    def train(self, name, which):
        g = self.groups[which]
        may = g not in self.trained and self.held.get(g, ("", 0.0))[0] == name
        self.step += 1
        try:
            self.store.commit_checkpoint(self.run, self.step, "c", SHA, [g], consumer=name, now=self.now)
        except StoreError:
            assert not may
        else:
            assert may
            self.trained.add(g)
            del self.held[g]

    @invariant()
    def sums_hold(self):
        if hasattr(self, "store"):
            leased = sum(until > self.now for _, until in self.held.values())
            assert self.store.waiting(self.run, now=self.now) == {
                "ready": 4 - len(self.trained) - leased,
                "leased": leased,
            }
            assert {made.id for made in self.store.groups(self.run, trained=True)} == self.trained

    def teardown(self):
        if hasattr(self, "store"):
            assert self.store.verify() == []
            self.store.close()
            self.folder.cleanup()


TestConsumers = Consumers.TestCase
TestConsumers.settings = settings(max_examples=25, stateful_step_count=20)
