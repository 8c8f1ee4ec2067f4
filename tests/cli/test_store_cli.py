"""palestra store: what it lists and shows is what was appended; --json is one object; wrong use is one line."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palestra.cli.main import main
from palestra.store import Store
from palestra.types import Message, Status, Unscored, from_plain
from palestra.types import Trajectory as Made
from tests.store.samples import group


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """Two runs: "warm" with one group, "rl" with two; one group is trained on, one rollout has no verdict."""
    path = tmp_path / "palestra.db"
    with Store.open(path, create=True) as store:
        warm = store.begin_run("warm", "sft", {"lr": 0.1})
        store.append(warm, [group("w", size=2)])
        store.end_run(warm, "finished")
        rl = store.begin_run("rl", "rl", {"algorithm": "grpo"}, parent=warm)
        broken = group("b", seed=2, step=1)
        lost = replace(broken.trajectories[0], score=Unscored("the judge was out"), status=Status.GRADER_ERROR)
        lost = replace(lost, error="judge: connection refused")
        store.append(rl, [group("a", seed=1), replace(broken, trajectories=(lost, *broken.trajectories[1:]))])
        store.commit_checkpoint(rl, 1, "checkpoints/1", "0" * 64, ["a"], {"reward": 0.25})
        store.add_metrics(rl, 2, {"reward": 0.5, "kl": 0.01})
    return path


class Told:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def data(self) -> dict[str, Any]:
        assert self.out.count("\n") == 1, "--json is one line"
        return json.loads(self.out)


@pytest.fixture
def palestra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: object) -> Told:
        monkeypatch.setattr("sys.argv", ["palestra", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Told(left.value.code or 0, out, err)  # type: ignore[arg-type]

    return call


def test_ls_counts_the_whole_and_each_run(palestra: Any, where: Path) -> None:
    told = palestra("store", "ls", "--store", where, "--json")
    assert told.code == 0 and told.err == ""
    assert told.data["counts"] == {
        "runs": 2,
        "groups": 3,
        "trained_groups": 1,
        "trajectories": 8,
        "trajectories_finished": 7,
        "trajectories_grader_error": 1,
        "turns": 8,
        "tokens": 8 * 46,
        "tokens_stored": 3 * 40 + 8 * 6,
    }
    warm, rl = told.data["runs"]
    assert {key: rl[key] for key in rl if key not in ("id", "created")} == {
        "name": "rl",
        "kind": "rl",
        "status": "running",
        "parent": warm["id"],
        "config": {"algorithm": "grpo"},
        "groups": 2,
        "trajectories": 6,
    }
    shown = palestra("store", "ls", "--store", where).out.splitlines()
    assert shown[0] == f"{warm['id']}  sft  finished  1 groups, 2 trajectories"
    assert shown[-1].startswith("2 runs, 3 groups, 1 trained_groups, 8 trajectories, ")


def test_ls_of_a_run_lists_its_trajectories_a_page_at_a_time(palestra: Any, where: Path) -> None:
    told = palestra("store", "ls", "--store", where, "--run", "rl", "--limit", 4, "--json").data
    assert [row["id"] for row in told["trajectories"]] == ["a-0", "a-1", "a-2", "b-0"]
    assert told["total"] == 6 and told["run"].startswith("rl-")
    assert told["trajectories"][1] == {
        "id": "a-1",
        "step": 0,
        "env": "env",
        "task": "task-0",
        "split": "train",
        "status": "finished",
        "reward": 1.0,
        "turns": 1,
        "tokens": 46,
        "trained_step": 1,
        "said": "answer 1",
    }
    lost = told["trajectories"][3]
    assert (lost["status"], lost["reward"], lost["trained_step"]) == ("grader_error", None, None)
    rest = palestra("store", "ls", "--store", where, "--run", "rl", "--limit", 4, "--offset", 4, "--json").data
    assert [row["id"] for row in rest["trajectories"]] == ["b-1", "b-2"] and rest["total"] == 6


def test_ls_of_a_run_says_where_the_next_page_is(palestra: Any, where: Path) -> None:
    first = palestra("store", "ls", "--store", where, "--run", "rl", "--limit", 4).out.splitlines()
    assert "1 to 4 of 6 of rl-" in first[-1] and first[-1].endswith("; the next ones: --offset 4")
    assert first[1] == "a-1  0  env  finished  1  'answer 1'"
    assert first[3] == "b-0  1  env  grader_error  unscored  'answer 0'"  # never a 0
    last = palestra("store", "ls", "--store", where, "--run", "rl", "--offset", 4).out.splitlines()
    assert "5 to 6 of 6 of rl-" in last[-1] and "--offset" not in last[-1]
    beyond = palestra("store", "ls", "--store", where, "--run", "rl", "--offset", 9).out.splitlines()
    assert len(beyond) == 1 and beyond[0].startswith("nothing from 10 on; it has 6 trajectories: rl-")


def test_show_a_run(palestra: Any, where: Path) -> None:
    told = palestra("store", "show", "rl", "--store", where, "--json").data
    assert told["config"] == {"algorithm": "grpo"} and told["counts"]["groups"] == 2
    [checkpoint] = told["checkpoints"]
    assert (checkpoint["step"], checkpoint["path"], checkpoint["sha256"]) == (1, "checkpoints/1", "0" * 64)
    assert told["metrics"] == {
        "kl": {"first": 0.01, "last": 0.01, "min": 0.01, "max": 0.01, "steps": 1},
        "reward": {"first": 0.25, "last": 0.5, "min": 0.25, "max": 0.5, "steps": 2},
    }
    assert json.loads(palestra("store", "show", "rl", "--store", where).out) == told


def test_show_a_trajectory_by_the_beginning_of_its_id(palestra: Any, where: Path) -> None:
    told = palestra("store", "show", "w-1", "--store", where, "--json").data
    assert from_plain(Made, told) == group("w", size=2).trajectories[1]
    shown = palestra("store", "show", "b-0", "--store", where).out
    assert "b-0: grader_error, unscored, 0.00 s\ntask: task-0 of env, train\n" in shown
    assert "unscored: the judge was out" in shown
    assert "score 1 (exact 1): index 1" in palestra("store", "show", "w-1", "--store", where).out
    assert "assistant: answer 0" in shown and "error: judge: connection refused" in shown
    assert "turn 0: 40 prompt tokens, 6 sampled, stop" in shown and "version" not in shown


def test_what_a_model_wrote_cannot_steer_the_terminal(palestra: Any, where: Path) -> None:
    made = group("x", seed=7, size=1)
    said = Message("assistant", "one\ttwo\n\x1b[2J\ud800 \u202e \r é 漢")
    with Store.open(where) as store:
        odd = replace(made.trajectories[0], transcript=(said,), error="\x07 bell", status=Status.MODEL_ERROR)
        store.append(store.find_run("rl").id, [replace(made, trajectories=(odd,))])
    shown = palestra("store", "show", "x-0", "--store", where).out
    assert "assistant: one\ttwo\n\\x1b[2J\\ud800 \\u202e \\r é 漢\n" in shown and "error: \\x07 bell\n" in shown


def test_show_every_sampled_token(palestra: Any, where: Path) -> None:
    made = group("w", size=2).trajectories[1].turns[0].completion
    shown = palestra("store", "show", "w-1", "--tokens", "--store", where).out.splitlines()[-6:]
    assert [int(line.split()[0]) for line in shown] == list(made.ids)
    assert all(f"{value:.5f}" in line for line, value in zip(shown, made.logprobs or (), strict=True))
    assert all(line.endswith("version 0") for line in shown)


def test_verify_says_yes_or_what_is_wrong(palestra: Any, where: Path) -> None:
    assert palestra("store", "verify", "--store", where).out == f"{where} holds: nothing is wrong with it\n"
    whole = palestra("store", "verify", "--store", where, "--json")
    assert (whole.code, whole.data) == (0, {"problems": []})
    with sqlite3.connect(where) as raw:
        raw.execute("update trajectories set transcript = '[]' where id = 'w-0'")
    raw.close()
    told = palestra("store", "verify", "--store", where, "--json")
    assert (told.code, told.data) == (1, {"problems": ["group w: its trajectories are not what its hash says"]})
    assert palestra("store", "verify", "--store", where).out == "group w: its trajectories are not what its hash says\n"


@pytest.mark.parametrize("command", [("ls",), ("ls", "--run", "rl"), ("show", "rl"), ("verify",)])
def test_a_wrong_path_is_one_line_and_makes_nothing(palestra: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    told = palestra("store", *command, "--store", tmp_path / "none.db")
    assert told.code == 2 and told.out == ""
    assert told.err.startswith(f"palestra: store {tmp_path / 'none.db'}: no such file; ") and told.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_name_offers_the_nearest(palestra: Any, where: Path) -> None:
    told = palestra("store", "ls", "--run", "wram", "--store", where, "--json")
    assert told.code == 2 and told.data["kind"] == "StoreError"
    assert "no run 'wram'; did you mean warm? (choices: rl, warm)" in told.data["error"]
    told = palestra("store", "show", "a-", "--store", where)
    assert told.code == 2 and "more than one trajectory begins with 'a-'" in told.err


def test_query_answers_in_rows_and_in_json(palestra: Any, where: Path) -> None:
    asked = "SELECT status, count(*) AS n FROM trajectories GROUP BY 1 ORDER BY 1"
    assert palestra("store", "query", asked, "--store", where).out == "status\tn\nfinished\t7\ngrader_error\t1\n"
    rows = palestra("store", "query", asked, "--limit", 1, "--store", where, "--json").data
    assert rows == {"columns": ["status", "n"], "rows": [["finished", 7]], "is_cut": True}
    assert palestra("store", "query", "SELECT ids FROM nodes LIMIT 1", "--store", where).out.endswith(" bytes\n")
    assert "trajectories: seq, id, group" in palestra("store", "query", "--tables").out
    for wrong in (("DROP TABLE runs",), ("SELECT x",), ()):
        told = palestra("store", "query", *wrong, "--store", where)
        assert told.code == 2 and told.out == "" and told.err.count("\n") == 1


def test_export_and_import(palestra: Any, where: Path, tmp_path: Path) -> None:
    out = tmp_path / "rl.jsonl"
    told = palestra(
        "store", "export", "jsonl", "--run", "rl", "--status", "all", "--out", out, "--store", where, "--json"
    ).data
    assert (told["groups"], told["trajectories"], told["rows"], told["redacted"]) == (2, 6, 6, {})
    again = palestra("store", "export", "jsonl", "--run", "rl", "--out", out, "--store", where)
    assert again.code == 2 and "--force" in again.err
    fewer = palestra(
        "store", "export", "jsonl", "--run", "rl", "--out", out, "--store", where, "--force", "--json"
    ).data
    assert fewer["trajectories"] == 5, "the one without a verdict is left out unless it is asked for"
    other = tmp_path / "other.db"
    made = palestra("store", "import", out, "--store", other, "--json").data
    assert made["groups"] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", "jsn", "--run", "rl", "--out", "x"), "did you mean jsonl?"),
        (("export", "jsonl", "--run", "lr", "--out", "x"), "no run 'lr'; (choices: rl, warm)"),
        (("export", "jsonl", "--run", "rl", "--out", "x", "--status", "finishd"), "did you mean finished?"),
        (("export", "jsonl", "--run", "rl", "--out", "x", "--redact", "all"), "--redact 'all' is unknown"),
        (("export", "jsonl", "--run", "rl", "--out", "x", "--step", "9"), "no rollout of run rl is of that"),
        (("export", "jsonl", "--run", "rl", "--out", "/proc/x"), "cannot be written"),
        (("import", "nought.jsonl"), "no such file"),
    ],
)
def test_wrong_exports_are_one_line(
    palestra: Any, where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = palestra("store", *arguments, "--store", where)
    assert (found.code, found.out, found.err.count("\n")) == (2, "", 1) and told in found.err
    assert not (tmp_path / "x").exists()


def test_compact_says_what_it_gave_back(palestra: Any, where: Path) -> None:
    told = palestra("store", "compact", "--store", where, "--json").data
    assert 0 < told["after_bytes"] <= told["before_bytes"] and told["after_bytes"] == where.stat().st_size
    assert palestra("store", "verify", "--store", where).code == 0
