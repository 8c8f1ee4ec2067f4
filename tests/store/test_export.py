"""Exports: whole ones come back equal, the others say what they mean, and secrets stay at home."""

import json
import math
import signal
from dataclasses import replace
from pathlib import Path

import duckdb
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from palestra.errors import StoreError
from palestra.store import Store
from palestra.store.export import PERSONAL, SECRETS, Redaction, Selection, export, import_groups
from palestra.store.export.lossless import from_lines, groups_of, rows_of, to_line
from palestra.store.export.training import chat_rows, preference_rows
from palestra.store.rows import RunInfo
from palestra.types import Completion, Group, Message, Score, Status, ToolCall, Trajectory, Turn, Unscored
from tests.store import samples

NOTHING = Redaction({})
RUN = RunInfo("r-1", "r", "rl", "finished", 0.0, None, {}, 0, 0)
ATIF = json.loads((Path(__file__).parents[1] / "reference" / "data" / "atif-1.8.schema.json").read_text())


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "s.db", create=True) as opened:
        run = opened.begin_run("rl", "rl", {})
        opened.append(run, [samples.group("a", step=0), samples.group("b", step=1, number=1, split="heldout", seed=1)])
        yield opened


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@given(samples.groups("g"))
def test_a_line_is_the_group_again(group):
    """NaN is unequal to itself, so that representations are compared."""
    rows = list(from_lines(to_line(row) for row in rows_of(group, RUN)))
    if group.trajectories:
        assert repr(list(groups_of(rows))) == repr([group])


@given(samples.groups("g"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_parquet_is_the_group_again(tmp_path, group):
    from palestra.store.export import parquet

    if not group.trajectories:
        return
    path = tmp_path / "g.parquet"
    try:
        parquet.write(path, rows_of(group, RUN))
    except StoreError as error:
        assert "Parquet cannot hold" in str(error)
    else:
        assert repr(list(groups_of(parquet.read(path)))) == repr([group])


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_is_imported_equals_what_was_exported(store, tmp_path, format):
    out = tmp_path / f"all.{format}"
    report = export(store, format, out, Selection("rl"))
    assert (report.groups, report.trajectories, report.rows, report.redacted) == (2, 6, 6, {})
    with Store.open(tmp_path / "other.db", create=True) as other:
        run, count = import_groups(other, out, name="copy")
        assert count == 2 and other.find_run("copy").status == "finished"
        assert list(other.groups(run)) == list(store.groups(store.find_run("rl").id))
        assert other.verify() == []


def test_importing_where_the_rollouts_came_from_is_refused_whole(store, tmp_path):
    export(store, "jsonl", tmp_path / "x", Selection("rl"))
    before = len(store.runs())
    with pytest.raises(StoreError, match="group a is in this store already"):
        import_groups(store, tmp_path / "x")
    assert len(store.runs()) == before


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", None),
        ("{}\n", "row 1: is no rollout of Palestra's"),
        ("nonsense\n", "row 1: is no JSON"),
        ("[" * 100_000, "row 1: is no JSON"),
        ('{"schema":"palestra.rollout/1","group":"g"}\n', "row 1: .*'task'"),
        ("PAR1 and then nothing of the kind", "cannot be read as Parquet"),
    ],
)
def test_files_that_are_no_export(tmp_path, text, told):
    (tmp_path / "f").write_text(text)
    with Store.open(tmp_path / "s.db", create=True) as store:
        if told is None:
            assert import_groups(store, tmp_path / "f")[1] == 0
        else:
            with pytest.raises(StoreError, match=told):
                import_groups(store, tmp_path / "f")
            assert store.runs() == []


def test_duckdb_reads_our_parquet(store, tmp_path):
    out = tmp_path / "r.parquet"
    export(store, "parquet", out, Selection("rl"))
    [row] = duckdb.sql(
        f"SELECT count(*), sum(reward), sum(len(turns[1].ids)), min(turns[1].logprobs[1]) FROM '{out}'"
    ).fetchall()
    firsts = [t.turns[0].completion.logprobs[0] for g in store.groups(store.find_run("rl").id) for t in g.trajectories]
    assert row == (6, 2.0, 36, min(firsts))


def test_a_selection_takes_split_step_status_and_reward(store, tmp_path):
    def count(**chosen):
        return export(store, "jsonl", tmp_path / "x", Selection("rl", **chosen), force=True).trajectories

    assert [count(), count(split="heldout"), count(step=0), count(least=0.5), count(most=0.5)] == [6, 3, 3, 2, 4]
    with pytest.raises(StoreError, match="no rollout of run rl is of that"):
        count(statuses=(Status.TIMED_OUT,))
    with pytest.raises(StoreError, match="no run 'nought'"):
        export(store, "jsonl", tmp_path / "y", Selection("nought"))
    with pytest.raises(StoreError, match="did you mean parquet"):
        export(store, "parket", tmp_path / "y", Selection("rl"))


def test_a_file_that_exists_is_kept_and_a_failed_export_leaves_nothing(store, tmp_path):
    out = tmp_path / "x"
    out.write_text("mine")
    with pytest.raises(StoreError, match="--force"):
        export(store, "jsonl", out, Selection("rl"))
    with pytest.raises(StoreError, match="no rollout"):
        export(store, "jsonl", out, Selection("rl", step=7), force=True)
    assert out.read_text() == "mine" and sorted(p.name for p in tmp_path.iterdir() if p.name[0] == ".") == []


def turn(prompt, ids, first=0):
    return Turn(tuple(prompt), Completion(tuple(ids), tuple(-float(i) for i in ids), (first,) * len(ids), "stop"))


def trajectory(*turns, transcript=(), score=None, id="t"):
    asked = samples.task()
    return Trajectory(id, asked, 0, turns, tuple(transcript), score or Score(1.0), Status.FINISHED)


def test_chat_masks_what_was_read_and_joins_turns_that_go_on():
    """Prompt 1 2, sampled 3 4; the world said 5; sampled 6. Then the harness began anew with 9, sampled 7."""
    made = trajectory(turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 5], [6], 1), turn([9], [7], 2))
    first, second = chat_rows(Group("g", made.task, 0, (made,)))
    assert first["ids"] == [1, 2, 3, 4, 5, 6] and first["path"] == [0, 2]
    assert first["is_sampled"] == [0, 0, 1, 1, 0, 1]
    assert first["logprobs"] == [None, None, -3.0, -4.0, None, -6.0]
    assert first["versions"] == [None, None, 0, 0, None, 1]
    assert (second["ids"], second["is_sampled"], second["path"]) == ([9, 7], [0, 1], [1, 2])


@given(samples.groups("g"))
def test_chat_keeps_every_sampled_token_once(group):
    rows = list(chat_rows(group))
    ids = [i for row in rows for i, own in zip(row["ids"] or (), row["is_sampled"] or (), strict=True) if own]
    assert ids == [i for t in group.trajectories for turn in t.turns for i in turn.completion.ids]


def test_a_pair_is_the_best_against_the_worst():
    opening = Message("user", "q")
    good, bad, middle = (
        trajectory(turn([1], [n]), transcript=(opening, Message("assistant", str(n))), score=Score(worth), id=str(n))
        for n, worth in ((2, 1.0), (3, 0.0), (4, 0.5))
    )
    unscored = replace(good, id="u", score=Unscored("lost"))
    [row] = preference_rows(Group("g", good.task, 0, (unscored, middle, bad, good)))
    assert row["prompt"] == [{"role": "user", "content": "q"}]
    assert row["chosen"] == [{"role": "assistant", "content": "2"}] and row["rejected"][0]["content"] == "3"
    assert (row["prompt_ids"], row["chosen_ids"], row["rejected_ids"]) == ([1], [2], [3])
    assert (row["chosen_reward"], row["rejected_reward"]) == (1.0, 0.0)
    assert list(preference_rows(Group("g", good.task, 0, (good, good, unscored)))) == []
    other = replace(bad, transcript=(Message("user", "another question"), Message("assistant", "3")))
    assert list(preference_rows(Group("g", good.task, 0, (good, other)))) == []


def test_atif_documents_are_what_harbor_takes(tmp_path):
    calls = (ToolCall("c1", "sh", '{"cmd": "ls"}'), ToolCall("c2", "sh", "no JSON"))
    said = [
        Message("system", "be good"),
        Message("user", "look"),
        Message("assistant", "", calls),
        Message("tool", "a.txt", tool_call_id="c1"),
        Message("tool", "whose?", tool_call_id="c9"),
        Message("assistant", "done"),
    ]
    made = trajectory(turn([1], [2]), turn([1, 2, 3], [4, 5]), transcript=said, score=Unscored("lost"))
    with Store.open(tmp_path / "s.db", create=True) as store:
        store.append(store.begin_run("rl", "rl", {}), [Group("g", made.task, 0, (made,)), samples.group("h")])
        export(store, "atif", tmp_path / "a", Selection("rl"))
    documents = lines(tmp_path / "a")
    for document in documents:
        jsonschema.validate(document, ATIF)
    steps = documents[0]["steps"]
    assert [(s["step_id"], s["source"]) for s in steps] == [(1, "system"), (2, "user"), (3, "agent"), (4, "agent")]
    assert [call["arguments"] for call in steps[2]["tool_calls"]] == [{"cmd": "ls"}, {"text": "no JSON"}]
    # An observation may only name a call of its own step.
    assert steps[2]["observation"]["results"] == [{"content": "a.txt", "source_call_id": "c1"}, {"content": "whose?"}]
    assert steps[3]["metrics"]["completion_token_ids"] == [4, 5] and steps[3]["metrics"]["logprobs"] == [-4.0, -5.0]


def test_no_format_writes_what_is_no_json(tmp_path):
    odd = Completion((1, 2), (-math.inf, math.nan), (0, 0), "stop")
    made = trajectory(Turn((5,), odd), transcript=[Message("assistant", "x")])
    with Store.open(tmp_path / "s.db", create=True) as store:
        store.append(store.begin_run("rl", "rl", {}), [Group("g", made.task, 0, (made,))])
        export(store, "jsonl", tmp_path / "j", Selection("rl"))
        assert lines(tmp_path / "j")[0]["turns"][0]["logprobs"] == ["-inf", "nan"]
        with pytest.raises(StoreError, match=r"chat cannot hold .*export jsonl"):
            export(store, "chat", tmp_path / "c", Selection("rl"))
        assert not (tmp_path / "c").exists()
        export(store, "atif", tmp_path / "a", Selection("rl"))
        assert "logprobs" not in lines(tmp_path / "a")[0]["steps"][0]["metrics"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("export OPENAI_API_KEY=sk-abc && run", "export OPENAI_API_KEY=[redacted: environment variable] && run"),
        ("DB_PASSWORD: 'two words' next", "DB_PASSWORD: [redacted: environment variable] next"),
        ('{"A_TOKEN":"x"}', '{"A_TOKEN":"x"}'),  # JSON's quote stands between name and colon
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer [redacted: bearer token]"),
        ("x-api-key: 0123456789", "x-api-key: [redacted: bearer token]"),
        ("postgresql://me:pa55@host/db", "postgresql://me:[redacted: credentials in a URL]@host/db"),
        ("use sk-0123456789abcdef01 now", "use [redacted: API key] now"),
        ("-----BEGIN RSA PRIVATE KEY-----\nAB\n-----END RSA PRIVATE KEY-----.", "[redacted: private key]."),
        ("the keyboard, monkey=3, token count = 7, https://host/a:b", None),
        ("KEY=", None),
    ],
)
def test_secrets(text, left):
    assert Redaction(SECRETS).text(text) == (text if left is None else left)


def test_personal_data_on_demand():
    told = "ask a.b@example.org or +49 89 1234 5678, version 1.2.3.4"
    assert Redaction().text(told) == told
    assert Redaction(PERSONAL).text(told) == (
        "ask [redacted: e-mail address] or [redacted: phone number], version 1.2.3.4"
    )


@pytest.mark.parametrize(
    "unit", ["a", "a.", "A_", "eyJ-", "://", "+1 ", "KEY", "a@b.", "-----BEGIN A PRIVATE KEY-----"]
)
def test_no_text_holds_a_redaction_up(unit):
    """A search that is quadratic in 400,000 characters takes minutes; this one takes some milliseconds."""

    def late(*_):
        raise AssertionError(f"a minute was not enough for {unit!r}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    try:
        Redaction({**SECRETS, **PERSONAL}).text(unit * (400_000 // len(unit)))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_rollout_with_a_secret_loses_its_tokens(store, tmp_path):
    made = trajectory(
        turn([1], [2]), transcript=[Message("user", "q"), Message("assistant", "MY_KEY=abc")], score=Score(1.0), id="s"
    )
    run = store.begin_run("leaky", "rl", {})
    store.append(run, [Group("l", made.task, 0, (made, replace(made, id="clean", transcript=made.transcript[:1])))])
    report = export(store, "jsonl", tmp_path / "x", Selection("leaky"))
    assert (report.redacted, report.stripped) == ({"environment variable": 1}, 1)
    secret, clean = lines(tmp_path / "x")
    assert secret["turns"] == [] and secret["transcript"][1]["content"] == "MY_KEY=[redacted: environment variable]"
    assert clean["turns"][0]["ids"] == [2]
    export(store, "jsonl", tmp_path / "y", Selection("leaky"), redaction=NOTHING)
    assert lines(tmp_path / "y")[0]["turns"][0]["ids"] == [2]
