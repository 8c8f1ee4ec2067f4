"""The grader that a script is: what counts as a reward, and what a script finds around it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from palestra.types import Score, Unscored
from palestra.verify.command import LIMITS, Command
from tests.verify.grading import left, task

WRITES = "echo {} > /logs/verifier/reward.txt"


async def graded(tmp_path, script, files=None, **settings):
    (tmp_path / "test.sh").write_text(f"#!/bin/bash\n{script}\n")
    (tmp_path / "hidden.txt").write_text("secret")
    return await Command(tmp_path, **settings).grade(task(), left(files or {"a.txt": "x"}))


@pytest.mark.parametrize(
    ("script", "value"),
    [
        (WRITES.format("1"), 1.0),
        (WRITES.format("0.25"), 0.25),
        ('echo \'{"reward": 0.5, "style": 1}\' > /logs/verifier/reward.json', 0.5),
        ("echo '{\"accuracy\": 1}' > /logs/verifier/reward.json", 1.0),
        ("echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1.0}' > /logs/verifier/reward.json", 1.0),
        (f"{WRITES.format('1')}; exit 3", 1.0),
        ('[ "$(cat /app/a.txt)" = x ] && [ "$(cat /tests/hidden.txt)" = secret ] && ' + WRITES.format("1"), 1.0),
        ("[ \"$(pwd -P)\" = /workspace ] && python3 -c 'print(1)' > /logs/verifier/reward.txt", 1.0),
    ],
)
async def test_a_reward_is_read(tmp_path, script, value):
    score = await graded(tmp_path, script)
    assert isinstance(score, Score) and score.value == value, score


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("exit 0", "wrote no reward"),
        ("exit 1", "wrote no reward"),
        (WRITES.format("nan"), "must be a number in"),
        (WRITES.format("2"), "must be a number in"),
        (WRITES.format("-0.1"), "must be a number in"),
        (WRITES.format("yes"), "holds no reward"),
        ("echo > /logs/verifier/reward.txt", "holds no reward"),
        ("echo '[1]' > /logs/verifier/reward.json", "must be a number in"),
        ("echo '{\"reward\": true}' > /logs/verifier/reward.json", "must be a number in"),
        ('echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json', "must hold 'reward'"),
        ("echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 0}' > /logs/verifier/reward.json", "two rewards"),
        ("ln -s /tests/hidden.txt /logs/verifier/reward.txt", "leaves the workspace"),
        ("mkfifo /logs/verifier/reward.txt", "not a regular file"),
    ],
)
async def test_what_is_no_reward_is_unscored(tmp_path, script, told):
    score = await graded(tmp_path, script)
    assert isinstance(score, Unscored) and told in score.reason, score


async def test_a_script_that_does_not_end_is_unscored(tmp_path):
    limits = replace(LIMITS, wall_s=0.5)
    score = await graded(tmp_path, f"{WRITES.format('1')}; sleep 30", limits=limits)
    assert isinstance(score, Unscored) and "ran out of time" in score.reason


async def test_a_process_that_outlives_the_script_changes_nothing(tmp_path):
    later = "(setsid bash -c 'sleep 0.2; echo 1 > /logs/verifier/reward.txt' &)"
    score = await graded(tmp_path, f"{later}; {WRITES.format('0')}")
    assert isinstance(score, Score) and score.value == 0.0


async def test_the_work_cannot_bring_a_reward_or_change_the_tests(tmp_path):
    brought = {".logs/verifier/reward.txt": "1", "a.txt": "x"}
    score = await graded(tmp_path, "true", brought)
    assert isinstance(score, Unscored) and "wrote no reward" in score.reason
    score = await graded(tmp_path, "echo 1 > /tests/hidden.txt; touch /tests/x; " + WRITES.format("0"), brought)
    assert isinstance(score, Score) and (tmp_path / "hidden.txt").read_text() == "secret"


async def test_installed_packages_are_seen_where_they_are_named(tmp_path):
    script = "python3 -c 'import attr' && " + WRITES.format("1")
    assert isinstance(await graded(tmp_path, script, packages=("attrs",)), Score)
    assert isinstance(await graded(tmp_path, script), Unscored)
