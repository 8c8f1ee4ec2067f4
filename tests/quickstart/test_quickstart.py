"""The main job, small: every phase for real, twice to the same numbers, and through kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palestra.store import Store

SHORT = ("--short", "--set", "limit=3")
ENV = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "palestra.cli.main", *argv]


def quickstart(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    argv = command("quickstart", "--out", str(out), "--json", *SHORT, *more)
    return subprocess.run(argv, env=ENV, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    out = tmp_path_factory.mktemp("job") / "a"
    ended = quickstart(out)
    assert ended.returncode == 0, ended.stderr
    yield out, json.loads(ended.stdout)


def test_it_prints_one_json_object_with_what_was_promised(done: tuple[Path, dict[str, Any]]) -> None:
    out, printed = done
    assert printed["admitted"] >= 3
    assert printed["refused"] >= 0
    for name in ("warm", "rl"):
        assert printed[name]["lo"] <= printed[name]["acc"] <= printed[name]["hi"]
        assert printed[name]["pass_at"].keys() == {"1", "8"}
        assert printed[name]["unscored"] == {}
    assert printed["seconds"].keys() == {"forge", "gate", "gold", "warm", "eval_warm", "rl", "eval_rl", "total"}
    assert printed["report"] == str(out / "report.html")


def test_the_same_seed_gives_the_same_report(done: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    out, printed = done
    again = quickstart(tmp_path / "b")
    assert json.loads(again.stdout)["fingerprint"] == printed["fingerprint"]
    first, second = (json.loads((folder / "report.json").read_text()) for folder in (out, tmp_path / "b"))
    assert first.pop("measured") != second.pop("measured")
    assert first == second


def test_the_report_holds_everything_and_needs_no_network(done: tuple[Path, dict[str, Any]]) -> None:
    out, _ = done
    page = (out / "report.html").read_text()
    report = json.loads((out / "report.json").read_text())
    assert 'src="http' not in page
    assert "<link" not in page
    assert len(report["samples"]) == 20
    assert {"settings", "versions", "environments", "curves", "left_out", "counts"} <= report.keys()
    assert [step for step, _ in report["curves"]["rl"]] == list(range(6))
    for key in ("reward", "entropy", "groups_kept", "behaviour_k3"):
        assert any(key in values for _, values in report["curves"]["rl"]), key
    for sample in report["samples"]:
        assert {"task", "gold", "before", "after"} <= sample.keys()
    for environment in report["environments"]:
        assert environment["id"] in page


def test_every_rollout_is_in_the_store(done: tuple[Path, dict[str, Any]]) -> None:
    out, _ = done
    with Store.open(out / "palestra.db") as store:
        runs = {run.name: run for run in store.runs()}
        assert {name: run.kind for name, run in runs.items()} == {
            "gold": "rollout",
            "warm": "sft",
            "eval-warm": "eval",
            "rl": "rl",
            "eval-rl": "eval",
        }
        assert {run.status for run in runs.values()} == {"finished"}
        assert runs["gold"].trajectories == 1200
        assert runs["rl"].trajectories == 6 * 16 * 8
        assert runs["eval-rl"].trajectories == 160 + 40 * 8
        assert store.counts()["trained_groups"] == 6 * 16
        assert {t.reward for group in store.groups(runs["gold"].id) for t in group.trajectories} == {1.0}
        assert store.verify() == []


def test_nothing_is_evaluated_on_what_was_trained_on(done: tuple[Path, dict[str, Any]]) -> None:
    out, _ = done
    with Store.open(out / "palestra.db") as store:
        shown = {
            name: {group.task.messages for group in store.groups(store.find_run(name).id)}
            for name in ("gold", "rl", "eval-warm", "eval-rl")
        }
    assert shown["eval-warm"] == shown["eval-rl"]
    assert not shown["eval-rl"] & (shown["gold"] | shown["rl"])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_job_resumes_to_the_same_report(
    done: tuple[Path, dict[str, Any]], tmp_path: Path, how: signal.Signals
) -> None:
    out = tmp_path / "killed"
    argv = command("quickstart", "--out", str(out), "--json", *SHORT)
    child = subprocess.Popen(argv, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not _has_begun(out, "rl") and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(how)
    child.communicate()
    assert child.returncode != 0, "it was to be killed during RL"
    ended = quickstart(out, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["fingerprint"] == done[1]["fingerprint"]


def _has_begun(out: Path, run: str) -> bool:
    if not (out / "palestra.db").exists() or "eval_warm" not in _phases(out):
        return False
    with Store.open(out / "palestra.db") as store:
        return any(found.name == run and found.groups > 0 for found in store.runs())


def _phases(out: Path) -> dict[str, Any]:
    return json.loads((out / "phases.json").read_text()) if (out / "phases.json").exists() else {}
