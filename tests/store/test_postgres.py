"""The same store on a real PostgreSQL server: what is read, what is refused, and writers that take turns."""

import itertools
import threading

import pytest
from sqlalchemy import create_engine, text

from palestra.errors import StoreError
from palestra.store import Store
from palestra.store.export import Selection, export, import_groups
from tests.store import postgres
from tests.store.samples import group

SHA = "0" * 64
NUMBERS = itertools.count()
pytestmark = pytest.mark.skipif(postgres.lack() is not None, reason=str(postgres.lack()))


@pytest.fixture(scope="module")
def server():
    with postgres.server() as url:
        yield url


@pytest.fixture
def url(server):
    name = f"t{next(NUMBERS)}"
    engine = create_engine(f"{server}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"{server}/{name}"


@pytest.fixture
def store(url):
    with Store.open(url, create=True) as opened:
        yield opened


def test_what_is_read_equals_what_was_appended(store):
    run = store.begin_run("rl", "rl", {"lr": 0.1})
    made = [group(f"g{n}", seed=n, number=n, step=n % 2) for n in range(8)]
    store.append(run, made)
    store.append(run, made)
    assert list(store.groups(run)) == made and store.verify() == []
    assert list(store.groups(run, step=1)) == made[1::2]
    assert store.trajectory("g3-1") == made[3].trajectories[1]
    assert store.counts()["trajectories"] == 24
    with pytest.raises(StoreError, match="with other content"):
        store.append(run, [group("g0", seed=99)])


def test_marks_metrics_and_leases(store):
    run = store.begin_run("rl", "rl", {})
    store.append(run, [group(f"g{n}", seed=n, number=n) for n in range(4)])
    assert [made.id for made in store.take(run, "a", most=2, lease_s=10, now=0)] == ["g0", "g1"]
    with pytest.raises(StoreError, match="g2: is not leased to a"):
        store.commit_checkpoint(run, 1, "c", SHA, ["g0", "g2"], consumer="a", now=1)
    assert store.checkpoints(run) == []
    store.commit_checkpoint(run, 1, "c", SHA, ["g0"], {"reward": 0.5}, consumer="a", now=1)
    assert store.metrics(run) == [(1, {"reward": 0.5})]
    assert store.waiting(run, now=1) == {"ready": 2, "leased": 1} and store.verify() == []


def test_it_opens_again_and_an_empty_database_is_told(url):
    with pytest.raises(StoreError, match="empty database"):
        Store.open(url)
    with Store.open(url, create=True) as store:
        store.begin_run("rl", "rl", {})
    with Store.open(url) as store:
        assert [run.name for run in store.runs()] == ["rl"]


def test_another_programs_tables_are_left_alone(url):
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE theirs (a integer)"))
    engine.dispose()
    with pytest.raises(StoreError, match=r"not Palestra's \(it has theirs\)"):
        Store.open(url, create=True)


def test_many_writers_and_consumers_at_once(url):
    """Four threads append 10 groups each while four others train: every group arrives, and is trained on, once."""
    with Store.open(url, create=True) as store:
        run = store.begin_run("rl", "rl", {})
    trained, errors, written = [], [], threading.Event()

    def guarded(work):
        try:
            with Store.open(url) as own:
                work(own)
        except BaseException as error:
            errors.append(error)

    def write(own, name):
        for n in range(10):
            own.append(run, [group(f"{name}-{n}", seed=n, number=n, size=1)])

    def consume(own, name):
        while True:
            was_written = written.is_set()
            taken = [made.id for made in own.take(run, name, most=3, lease_s=600)]
            if taken:
                own.commit_checkpoint(run, 1, name, SHA, taken, consumer=name)
                trained.extend(taken)
            elif was_written:
                return

    writers = [threading.Thread(target=guarded, args=(lambda own, n=n: write(own, f"w{n}"),)) for n in range(4)]
    consumers = [threading.Thread(target=guarded, args=(lambda own, n=n: consume(own, f"c{n}"),)) for n in range(4)]
    for thread in (*writers, *consumers):
        thread.start()
    for thread in writers:
        thread.join()
    written.set()
    for thread in consumers:
        thread.join()
    assert errors == [] and sorted(trained) == sorted(f"w{n}-{k}" for n in range(4) for k in range(10))
    with Store.open(url) as store:
        assert store.verify() == [] and store.counts(run)["trained_groups"] == 40


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM runs", "may only read"),
        ("WITH x AS (INSERT INTO meta VALUES ('a', 'b') RETURNING name) SELECT * FROM x", "may only read"),
        ("SELECT 1; COMMIT; DELETE FROM meta", "cannot insert multiple commands"),
        ("COMMIT", "asks for nothing"),
        ("SELECT nought FROM runs", "does not exist"),
        ("SELECT pg_sleep(60)", r"more than 0\.2 s"),
    ],
)
def test_a_query_only_reads(store, sql, told):
    run = store.begin_run("rl", "rl", {})
    with pytest.raises(StoreError, match=told):
        store.query(sql, timeout_s=0.2)
    answer = store.query("SELECT id, name FROM runs WHERE name LIKE 'r%'")
    assert (answer.columns, answer.rows) == (("id", "name"), [(run, "rl")])


def test_export_and_import_between_databases(store, tmp_path):
    run = store.begin_run("rl", "rl", {})
    store.append(run, [group("a"), group("b", number=1, seed=1)])
    export(store, "parquet", tmp_path / "x", Selection("rl"))
    with Store.open(tmp_path / "s.db", create=True) as other:
        copy, _ = import_groups(other, tmp_path / "x")
        assert list(other.groups(copy)) == list(store.groups(run))


def test_no_server_is_told_in_a_sentence(server):
    with pytest.raises(StoreError, match="store postgresql"):
        Store.open("postgresql+psycopg://palestra@127.0.0.1:1/none", create=True)
    with pytest.raises(StoreError, match="nought"):
        Store.open(f"{server}/nought", create=True)


def test_compacting_is_the_servers_own_affair(store):
    with pytest.raises(StoreError, match="is no SQLite file"):
        store.compact()


def test_the_commands_take_a_url(store, url):
    from typer.testing import CliRunner

    from palestra.cli.main import app

    run = store.begin_run("rl", "rl", {})
    store.append(run, [group("a")])
    listed = CliRunner().invoke(app, ["store", "ls", "--store", url])
    assert listed.exit_code == 0 and f"{run}  rl  running  1 groups, 3 trajectories" in listed.stdout
    assert CliRunner().invoke(app, ["store", "verify", "--store", url]).exit_code == 0


def test_a_password_is_never_printed(server):
    secret = server.replace("palestra@", "palestra:hunter2@")
    for url in (
        f"{secret}/nought",
        "postgresql+psycopg://a:hunter2@127.0.0.1:1/x",
        "nodriver://a:hunter2@h/x",
        "a:hunter2://",
    ):
        with pytest.raises(StoreError) as told:
            Store.open(url, create=True)
        assert "hunter2" not in str(told.value)
    with Store.open(f"{secret}/postgres", create=True) as store:
        assert "hunter2" not in store.where and "palestra" in store.where
        with pytest.raises(StoreError) as told:
            store.query("SELECT nought")
        assert "hunter2" not in str(told.value)
