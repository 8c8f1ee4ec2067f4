"""What can be wrong with a main job's input: one sentence, exit 2, nothing left behind that a later run would meet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def quickstart(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "palestra.cli.main", "quickstart", *argv],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
    )


def refused(ended: subprocess.CompletedProcess[str], *says: str) -> None:
    assert ended.returncode == 2, (ended.returncode, ended.stderr)
    assert ended.stdout == ""
    told = [line for line in ended.stderr.splitlines() if line.startswith("palestra: ")]
    assert len(told) == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    for word in says:
        assert word in told[0], told[0]


def test_unknown_package(tmp_path: Path) -> None:
    out = tmp_path / "q"
    refused(quickstart("--out", str(out), "--package", "inflectoin"), "inflectoin", "inflection")
    assert not (out / "envs").exists()


def test_unknown_setting(tmp_path: Path) -> None:
    refused(quickstart("--out", str(tmp_path / "q"), "--set", "rl.stepz=3"), "rl.stepz", "did you mean steps")
    refused(quickstart("--out", str(tmp_path / "q"), "--set", "rl.steps=0"), "rl.steps", "greater than or equal to 1")
    refused(quickstart("--out", str(tmp_path / "q"), "--set", "steps"), "key=value")
    assert not (tmp_path / "q").exists()


def test_a_folder_that_is_somebody_else_s_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    refused(quickstart("--out", str(tmp_path)), "is no quickstart's folder", "--out")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_an_output_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(quickstart("--out", str(tmp_path / "file" / "q")), "cannot be written")


def test_nothing_to_resume(tmp_path: Path) -> None:
    refused(quickstart("--out", str(tmp_path / "q"), "--resume"), "no quickstart to resume", "without --resume")


def test_resuming_with_other_settings(tmp_path: Path) -> None:
    out = tmp_path / "q"
    refused(quickstart("--out", str(out), "--package", "inflectoin"), "inflectoin")
    refused(quickstart("--out", str(out), "--resume", "--seed", "3"), "other settings")


def test_a_corrupt_store_is_named(tmp_path: Path) -> None:
    out = tmp_path / "q"
    ended = quickstart(
        "--out", str(out), "--short", "--set", "limit=1", "--package", "inflection", "--set", "sft.steps=0"
    )
    refused(ended, "sft.steps")
    argv = ("--out", str(out), "--short", "--set", "limit=1", "--package", "inflection")
    assert quickstart(*argv, "--set", "eval_tasks=20", "--set", "sft.steps=2", "--set", "rl.steps=1").returncode == 0
    phases = json.loads((out / "phases.json").read_text())
    del phases["rl"], phases["eval_rl"]
    (out / "phases.json").write_text(json.dumps(phases))
    (out / "palestra.db").write_bytes(b"not a database, whatever it was before" * 100)
    for extra in ("-wal", "-shm"):
        (out / f"palestra.db{extra}").unlink(missing_ok=True)
    argv += ("--set", "eval_tasks=20", "--set", "sft.steps=2", "--set", "rl.steps=1", "--resume")
    refused(quickstart(*argv), "palestra.db", "database")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_a_full_disk_is_said_and_the_job_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        argv = ("--out", str(disk / "q"), "--short", "--set", "limit=2", "--set", "sft.steps=3", "--set", "rl.steps=2")
        refused(quickstart(*argv), "disk")
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        ended = quickstart(*argv, "--resume", "--json")
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["admitted"] >= 2
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
