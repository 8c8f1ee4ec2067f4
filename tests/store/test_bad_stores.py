"""Whatever is wrong with a store: one sentence that names it, the rule and the way out; nothing is overwritten."""

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from palestra.errors import StoreError
from palestra.store import Store
from palestra.store.connect import file_system, refuse_network
from palestra.store.schema import SCHEMA_VERSION
from tests.store.samples import group


@pytest.fixture
def path(tmp_path):
    """A store with ten groups, closed, all in one file."""
    made = tmp_path / "palestra.db"
    with Store.open(made, create=True) as store:
        store.append(store.begin_run("r", "rl", {}), [group(f"g{at}", seed=at) for at in range(10)])
    assert sorted(tmp_path.iterdir()) == [made]
    return made


def refused(where, *, create=False, **options):
    with pytest.raises(StoreError) as caught:
        Store.open(where, create=create, **options).close()
    said = str(caught.value)
    assert said.startswith("store ") and "\n" not in said
    return said


def test_a_missing_file(tmp_path):
    assert "no such file" in refused(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(tmp_path):
    assert "does not exist; make it first" in refused(tmp_path / "no" / "palestra.db", create=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder(tmp_path):
    assert f"is a folder; name a file, as {tmp_path / 'palestra.db'}" in refused(tmp_path, create=True)


def test_an_empty_file_is_no_store_but_may_become_one(tmp_path):
    path = tmp_path / "palestra.db"
    path.touch()
    assert "is an empty file" in refused(path)
    Store.open(path, create=True).close()
    Store.open(path).close()


@pytest.mark.parametrize("content", [b"hello", b"SQLite format 3", b"\0" * 5000])
def test_a_file_of_another_kind(tmp_path, content):
    path = tmp_path / "palestra.db"
    path.write_bytes(content)
    assert "is no SQLite database" in refused(path, create=True)
    assert path.read_bytes() == content


def test_a_database_of_another_program(tmp_path):
    path = tmp_path / "palestra.db"
    with sqlite3.connect(path) as other:
        other.execute("create table songs (name)")
    assert "holds tables, but not Palestra's (it has songs)" in refused(path, create=True)


def test_a_database_with_no_tables_yet(tmp_path):
    path = tmp_path / "palestra.db"
    with sqlite3.connect(path) as other:
        other.execute("pragma user_version = 1")
    assert "is an empty database" in refused(path)


def test_a_store_from_the_future_is_left_alone(path):
    with sqlite3.connect(path) as raw:
        raw.execute("update meta set value = '999' where name = 'schema_version'")
    before = path.read_bytes()
    said = refused(path, create=True)
    assert f"has schema version 999, and this Palestra knows versions up to {SCHEMA_VERSION}" in said
    assert "upgrade Palestra" in said and path.read_bytes() == before


@pytest.mark.parametrize("part", [0.0005, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_a_truncated_store_is_a_sentence_or_a_finding_never_a_traceback(path, part):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    try:
        with Store.open(path) as store:
            assert store.verify() != []
    except StoreError as error:
        assert str(error).startswith(f"store {path}: ") and "\n" not in str(error)


def test_scribbles_over_any_page_are_never_a_traceback_nor_silent(path):
    whole = path.read_bytes()
    for at in range(0, len(whole), 4096):
        path.write_bytes(whole[: at + 20] + b"\xa5" * 4000 + whole[at + 4020 :])
        try:
            with Store.open(path) as store:
                found = store.verify()
                if found == []:
                    assert [g.id for g in store.groups(store.find_run("r").id)] == [f"g{at}" for at in range(10)]
                    assert store.counts()["groups"] == 10
        except StoreError as error:
            assert str(error).startswith("store ")


def test_a_locked_store(path):
    with sqlite3.connect(path, isolation_level=None) as other, Store.open(path, busy_s=0.1) as store:
        other.execute("begin immediate")
        with pytest.raises(StoreError, match="stayed locked by another writer; wait for it to end"):
            store.begin_run("x", "rl", {})
        other.execute("rollback")
        store.begin_run("x", "rl", {})


def test_a_full_disk_keeps_what_was_acknowledged_and_nothing_else(tmp_path):
    path = tmp_path / "palestra.db"
    kept = []
    with Store.open(path, create=True, max_mib=1) as store:
        run = store.begin_run("r", "rl", {})
        with pytest.raises(StoreError, match="cannot grow: the disk, or its size limit, is full; free space"):
            for at in range(100):
                batch = [group(f"g{at}-{part}", seed=at, prompt=range(at, at + 900)) for part in range(16)]
                store.append(run, batch)
                kept += [made.id for made in batch]
    assert len(kept) > 16
    with Store.open(path) as store:
        assert [made.id for made in store.groups(run)] == kept
        assert store.verify() == []
        store.append(run, batch)


AS_USER = """
import os, sys, tempfile
from palestra.errors import StoreError
from palestra.store import Store
with tempfile.TemporaryDirectory() as folder:
    Store.open(folder + "/warm.db", create=True).close()  # imports all that the last lines need
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    with Store.open(sys.argv[1], create=True) as store:
        store.begin_run("x", "rl", {})
except StoreError as error:
    print(error)
"""


def as_user(path):
    """What an ordinary user is told who opens ``path`` and writes."""
    ran = subprocess.run([sys.executable, "-c", AS_USER, str(path)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def reachable():
    """A store in a folder that any user may enter: pytest's own temporary folders are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    Store.open(folder / "palestra.db", create=True).close()
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_an_unwritable_folder(reachable):
    reachable.chmod(0o555)
    said = as_user(reachable / "new.db")
    assert "cannot be opened or made here; check that the folder exists and that you may write in it" in said
    assert not (reachable / "new.db").exists()


def test_a_read_only_file(reachable):
    (reachable / "palestra.db").chmod(0o444)
    assert "is read-only; change its permissions" in as_user(reachable / "palestra.db")


def test_a_file_that_may_not_be_read(reachable):
    (reachable / "palestra.db").chmod(0o000)
    assert "cannot be read: Permission denied; check its permissions" in as_user(reachable / "palestra.db")


MOUNTS = [
    "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
    "40 21 0:50 / /data rw - nfs4 filer:/data rw",
    "41 40 254:1 / /data/fast\\040disk rw - xfs /dev/vdb rw",
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home/a.db", "ext4"), ("/data/a.db", "nfs4"), ("/data/fast disk/a.db", "xfs"), ("/database/a.db", "ext4")],
)
def test_the_file_system_of_a_path(path, kind):
    assert file_system(Path(path), MOUNTS) == kind


def test_a_network_folder(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 a rw\n2 1 0:2 / {tmp_path} rw shared:1 - nfs4 filer:/x rw\n")
    with pytest.raises(StoreError, match=r"lies on a network folder \(nfs4\).*put it on a local disk, or name a Postg"):
        refuse_network(tmp_path / "palestra.db", mounts)
    refuse_network(Path("/elsewhere/palestra.db"), mounts)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "a store must outlive its process"),
        ("sqlite:///:memory:", "a store must outlive its process"),
        ("nodb://x/y", "cannot be reached"),
        ("://", "is no database URL"),
    ],
)
def test_a_wrong_url(url, said):
    assert said in refused(url, create=True)


def test_a_url_names_the_same_store(path):
    with Store.open(f"sqlite:///{path}") as store:
        assert store.counts()["groups"] == 10
    assert "no such file" in refused(f"sqlite:///{path}x")


def test_a_path_with_signs_that_mean_something_in_urls(tmp_path):
    path = tmp_path / "a?b#c%20d.db"
    Store.open(path, create=True).close()
    assert path.exists() and list(tmp_path.iterdir()) == [path]
