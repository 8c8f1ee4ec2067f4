"""What is not ours stays as it is, what no database can keep is told in a sentence, and a full disk loses nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from palestra.errors import StoreError
from palestra.store import Store
from palestra.types import Group, Trajectory
from tests.store.samples import group


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "palestra.db", create=True) as opened:
        yield opened


@pytest.mark.parametrize(
    "tables",
    [
        "create table songs (name)",
        "create table meta (name, value); create table songs (name)",
        "create table meta (name, value); insert into meta values ('schema_version', 'abc')",
        "create table meta (key, content); insert into meta values ('schema_version', '1')",
    ],
)
def test_a_database_of_another_program_keeps_every_byte(tmp_path: Path, tables: str) -> None:
    path = tmp_path / "songs.db"
    with sqlite3.connect(path) as other:
        other.executescript(tables)
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"^store {path}: (holds tables, but not|has tables of another shape)"):
        Store.open(path, create=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def with_first(made: Group, **changes: object) -> Group:
    first: Trajectory = replace(made.trajectories[0], **changes)  # type: ignore[arg-type]
    return replace(made, trajectories=(first, *made.trajectories[1:]))


@pytest.mark.parametrize("error", ["\ud800 from a broken pipe", "a\0b", "line\nline", "", "é \U0001f600 \u2028"])
def test_an_error_may_quote_any_text(store: Store, error: str) -> None:
    made = with_first(group(), error=error)
    run = store.begin_run("r", "rl", {})
    store.append(run, [made])
    assert list(store.groups(run)) == [made]
    assert store.verify() == []


def test_a_lone_surrogate_where_none_can_be_is_a_sentence_and_leaves_nothing(store: Store) -> None:
    run = store.begin_run("r", "rl", {})
    for call in (
        lambda: store.begin_run("\ud800", "rl", {}),
        lambda: store.append(run, [group("good", seed=1), group("\ud800")]),
        lambda: store.append(run, [with_first(group(), id="\ud800")]),
        lambda: store.commit_checkpoint(run, 1, "\udcff/step", "0" * 64),
        lambda: store.add_metrics(run, 1, {"\ud800": 1.0}),
        lambda: store.trajectory("\ud800"),
    ):
        with pytest.raises(StoreError, match=rf"^store {store.where}: no database keeps a lone surrogate \('.ud.*repl"):
            call()
    assert store.counts() | {"runs": 0} == dict.fromkeys(store.counts(), 0)
    assert store.checkpoints(run) == [] and store.metrics(run) == []


def test_a_step_beyond_64_bits_is_a_sentence(store: Store) -> None:
    run = store.begin_run("r", "rl", {})
    with pytest.raises(StoreError, match="cannot keep an integer beyond 64 bits"):
        store.append(run, [group("good", seed=1), replace(group("far", seed=2), step=2**70)])
    assert list(store.groups(run)) == []


def test_an_unknown_run_counts_nothing(store: Store) -> None:
    store.append(store.begin_run("r", "rl", {}), [group()])
    assert set(store.counts("nobody").values()) == {0}


def test_many_may_make_the_same_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "palestra.db"

    def make(at: int) -> str:
        with Store.open(path, create=True) as opened:
            run = opened.begin_run(f"r{at}", "rl", {})
            opened.append(run, [group(f"g{at}", seed=at)])
        return run

    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(make, range(8)))
    with Store.open(path) as opened:
        assert sorted(run.id for run in opened.runs()) == sorted(runs)
        assert opened.counts()["groups"] == 8 and opened.verify() == []


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for create in (False, True):
        with pytest.raises(StoreError, match=f"^store {pipe}: is no regular file; name another$"):
            Store.open(pipe, create=create)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "loop/../loop", "loop"])
def test_a_name_that_leads_nowhere_is_a_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StoreError, match=r"^store [^\n]*: (cannot be reached: .*; name another|.* make it first)"):
        Store.open(str(tmp_path / name), create=True)
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


@pytest.mark.parametrize("max_mib", [0, -1])
def test_a_size_limit_that_limits_nothing_is_refused(tmp_path: Path, max_mib: int) -> None:
    with pytest.raises(StoreError, match=f"size limit must be at least 1 MiB, got {max_mib}"):
        Store.open(tmp_path / "palestra.db", create=True, max_mib=max_mib)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB; skipped where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_disk_that_is_really_full_keeps_what_was_acknowledged(tiny: Path) -> None:
    kept: list[str] = []
    with Store.open(tiny / "palestra.db", create=True) as opened:
        run = opened.begin_run("r", "rl", {})
        with pytest.raises(
            StoreError, match="cannot grow: the disk, or its size limit, is full; free space and repeat"
        ):
            for at in range(200):
                opened.append(run, [group(f"g{at}", seed=at, prompt=range(at, at + 9000))])
                kept.append(f"g{at}")
        assert len(kept) > 3
        assert [made.id for made in opened.groups(run)] == kept
    with Store.open(tiny / "palestra.db") as opened:
        assert [made.id for made in opened.groups(run)] == kept
        assert opened.verify() == []
