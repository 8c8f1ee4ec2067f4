"""SQL over a store: it answers, and it changes nothing."""

import hashlib
import sqlite3

import pytest

from palestra.errors import StoreError
from palestra.store import Store
from tests.store import samples


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "s.db", create=True) as opened:
        opened.append(opened.begin_run("rl", "rl", {}), [samples.group("a"), samples.group("b", number=1, seed=1)])
        yield opened


def test_it_answers(store):
    answer = store.query("SELECT status, count(*) AS n, avg(reward) FROM trajectories GROUP BY 1")
    assert (answer.columns, answer.is_cut) == (("status", "n", "avg(reward)"), False)
    assert answer.rows == [("finished", 6, pytest.approx(1 / 3))]


def test_it_says_when_it_cut(store):
    answer = store.query("SELECT id FROM trajectories ORDER BY id", limit=2)
    assert (answer.rows, answer.is_cut) == ([("a-0",), ("a-1",)], True)
    assert not store.query("SELECT id FROM trajectories", limit=6).is_cut


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM runs",
        "WITH x AS (SELECT 1) INSERT INTO meta SELECT 'a', 'b'",
        "DROP TABLE nodes",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA writable_schema = 1",
        "ATTACH '{other}' AS other",
        "VACUUM INTO '{other}'",
        "BEGIN",
        "CREATE TEMP TABLE t (a)",
        "REINDEX",
    ],
)
def test_it_cannot_change_anything(store, tmp_path, sql):
    other = tmp_path / "other.db"
    before = hashlib.sha256((tmp_path / "s.db").read_bytes()).hexdigest()
    with pytest.raises(StoreError, match="may only read"):
        store.query(sql.format(other=other))
    assert hashlib.sha256((tmp_path / "s.db").read_bytes()).hexdigest() == before and not other.exists()


def test_no_file_beside_the_store_is_read(store, tmp_path):
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE secret (a)").connection.close()
    with pytest.raises(StoreError, match="may only read"):
        store.query(f"ATTACH '{tmp_path / 'other.db'}' AS o")
    with pytest.raises(StoreError, match="query"):
        store.query("SELECT load_extension('x')")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT nought FROM runs", "no such column: nought; palestra store query --tables"),
        ("SELEC 1", "syntax error"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("", "asks for nothing"),
        ("-- a comment", "asks for nothing"),
        ("SELECT '\ud800'", "wrong"),
        ("SELECT 1 \0", "wrong"),
    ],
)
def test_wrong_queries(store, sql, told):
    with pytest.raises(StoreError, match=told):
        store.query(sql)


def test_an_endless_query_ends(store):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(StoreError, match=r"more than 0\.2 s"):
        store.query(endless, timeout_s=0.2)
