"""Kill -9 at any moment: what was acknowledged is there, nothing is there in half, nothing is trained on twice.

Prevents: rollouts lost on resume (NeMo-RL 3599, OpenRLHF 1322, trl 7294), finished rollouts thrown away (NeMo-RL 3480).
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palestra.store import Store
from tests.faults.store_child import made

CHILD = Path(__file__).with_name("store_child.py")
ROOT = Path(__file__).parents[2]


def child(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.fixture
def breeder():
    with child() as process:
        yield process
        process.stdin.close()


def killed(breeder, draw, *arguments):
    """What a child had said when it was killed: a few lines, then a moment drawn from the time that one more takes."""
    print(*arguments, file=breeder.stdin, flush=True)
    ready, pid = breeder.stdout.readline().split()
    assert ready == "ready"
    said = [breeder.stdout.readline() for _ in range(draw.randint(1, 6))]
    time.sleep(draw.random() * 0.02)
    os.kill(int(pid), signal.SIGKILL)
    while (line := breeder.stdout.readline()) != "dead\n":
        assert line, "the process that breeds the others is gone"
        said.append(line)
    return [line.split() for line in said]


@pytest.fixture
def where(tmp_path):
    return tmp_path / "palestra.db"


def test_every_acknowledged_group_survives_twenty_kills(where, breeder):
    draw = random.Random(0)
    acknowledged = {}
    with Store.open(where, create=True) as store:
        run = store.begin_run("r", "rl", {})
    for life in range(20):
        for _, id, number in killed(breeder, draw, "append", where, run, f"life{life}"):
            acknowledged[id] = int(number)
        with Store.open(where) as store:
            assert store.verify() == []
    with Store.open(where) as store:
        kept = {group.id: group for group in store.groups(run)}
    assert len(acknowledged) >= 20
    assert all(kept[id] == made(id, number) for id, number in acknowledged.items())
    batches = {id.rpartition("-")[0] for id in kept}
    assert set(kept) == {f"{batch}-{part}" for batch in batches for part in range(3)}  # whole batches only
    assert len(kept) - len(acknowledged) <= 20 * 3  # at most the one batch in flight, each time


def test_a_checkpoint_and_its_marks_are_one_under_kill(where, breeder):
    draw = random.Random(1)
    reached = -1
    with Store.open(where, create=True) as store:
        run = store.begin_run("r", "rl", {})
    for _ in range(20):
        acknowledged = [int(number) for _, number in killed(breeder, draw, "checkpoint", where, run, "g")]
        with Store.open(where) as store:
            assert store.verify() == []  # includes: no mark without its checkpoint
            last = store.last_checkpoint(run)
            steps = [checkpoint.step for checkpoint in store.checkpoints(run)]
            spent = [group.id for group in store.groups(run, trained=True)]
            metrics = store.metrics(run)
        assert steps == list(range(len(steps)))  # none skipped, none repeated
        assert spent == [f"g-{step}-{part}" for step in steps for part in range(3)]
        assert metrics == [(step, {"step": step}) for step in steps]
        at_least = max([reached, *acknowledged])
        reached = last.step if last else -1
        assert at_least <= reached <= at_least + 1  # one may have been committed and not yet acknowledged
    assert reached >= 20


def test_two_writers_both_succeed(where):
    with Store.open(where, create=True) as store:
        run = store.begin_run("r", "rl", {})
    writers = [child("append", where, run, name, 40) for name in ("a", "b")]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    with Store.open(where) as store:
        kept = [group.id for group in store.groups(run)]
        assert store.verify() == []
    assert len(kept) == 2 * 40 * 3
    for name in ("a", "b"):  # each writer's own order is kept
        assert [id for id in kept if id.startswith(name)] == [
            f"{name}-{n}-{part}" for n in range(40) for part in range(3)
        ]
