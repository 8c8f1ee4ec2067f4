"""Kill training at any step: what was acknowledged is kept, nothing is trained on twice, the end is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from palestra.errors import StoreError, TrainError
from palestra.models.load import load_model
from palestra.store import Store
from palestra.train.sync import train_rl
from tests.faults.train_child import STEPS, main, settings
from tests.toy import ParityEnvironment

ROOT = Path(__file__).parents[2]


def start(folder: Path, *, resume: bool) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "tests.faults.train_child", str(folder), *(["--resume"] if resume else [])]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    return subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)


def kill_after(child: subprocess.Popen[str], step: int, how: signal.Signals) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) >= step:
            child.send_signal(how)
            break
    child.stdout.read()
    assert child.wait() != 0, "it was to be killed before its end"


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    threads = torch.get_num_threads()
    main(folder, resume=False)
    torch.set_num_threads(threads)
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder / "model")[0].state_dict()


def test_the_toy_run_trains(uninterrupted: Path) -> None:
    with Store.open(uninterrupted / "s.db") as store:
        metrics = [values for _, values in store.metrics(store.find_run("rl").id)]
    assert len(metrics) == STEPS
    assert sum("loss" in values for values in metrics) >= STEPS - 2, "its groups carry a signal"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_resumes_to_the_same_numbers(tmp_path: Path, uninterrupted: Path, how: signal.Signals) -> None:
    for step, resume in ((2, False), (5, True), (6, True)):  # before the first checkpoint, between, and at one more
        kill_after(start(tmp_path, resume=resume), step, how)
    last = start(tmp_path, resume=True)
    assert last.communicate()[0].split()[-1] == str(STEPS)
    assert last.returncode == 0

    expected = weights(uninterrupted)
    for name, tensor in weights(tmp_path).items():
        assert torch.equal(tensor, expected[name]), name
    with Store.open(tmp_path / "s.db") as store, Store.open(uninterrupted / "s.db") as whole:
        [run] = store.runs()
        assert run.status == "finished"
        assert run.groups == STEPS * 4
        assert store.counts()["trained_groups"] == STEPS * 4
        for step in range(STEPS):
            assert len(list(store.groups(run.id, step=step))) == 4
        # Each group was spent by the first checkpoint after its step, once.
        assert [c.step for c in store.checkpoints(run.id)] == [4, 8, 9]
        assert store.verify() == []
        rewards = [[t.reward for t in group.trajectories] for group in store.groups(run.id)]
        assert rewards == [[t.reward for t in group.trajectories] for group in whole.groups(whole.runs()[0].id)]


def test_other_settings_do_not_resume(uninterrupted: Path) -> None:
    other = settings(uninterrupted).model_copy(update={"seed": 1})
    with Store.open(uninterrupted / "s.db") as store, pytest.raises(TrainError, match="another seed: it began with 0"):
        train_rl(other, [ParityEnvironment()], store, resume=True)


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db", create=True) as store, pytest.raises(StoreError, match="no run 'rl'"):
        train_rl(settings(tmp_path), [ParityEnvironment()], store, resume=True)


def test_a_changed_checkpoint_is_refused(tmp_path: Path) -> None:
    kill_after(start(tmp_path, resume=False), 5, signal.SIGKILL)
    state = tmp_path / "checkpoints" / "step-000004" / "state.json"
    state.write_text(state.read_text() + " ")
    with Store.open(tmp_path / "s.db") as store, pytest.raises(StoreError, match="step-000004 is changed"):
        train_rl(settings(tmp_path), [ParityEnvironment()], store, resume=True)


def test_training_stops_when_too_many_rollouts_have_no_score(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db", create=True) as store:
        with pytest.raises(TrainError, match="16 of 16 rollouts have no score"):
            train_rl(settings(tmp_path), [ParityEnvironment(breaks="open")], store)
        [run] = store.runs()
        assert run.status == "interrupted"
        assert store.counts(run.id)["trajectories_environment_error"] == 16, "the faults themselves are kept"
