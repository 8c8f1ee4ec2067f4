"""Rollouts in task bundles: an agent at work in a sandbox, and what the store keeps of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from palestra.envs.bundle import load_environment
from palestra.models.scripted import ScriptedPolicy, scripted
from palestra.rollouts.run import RolloutPlan, roll_out
from palestra.store import Store
from palestra.types import Status, Trajectory
from tests.bundles import task_bundle

PAYS = "#!/bin/bash\ncd /logs/verifier\nif grep -q done /app/out.txt; then echo 1; else echo 0; fi > reward.txt\n"


def stored(path: Path, policy: ScriptedPolicy, tmp_path: Path) -> Trajectory:
    """What the store has of one rollout."""
    env = load_environment(path, allow_uncertified=True)
    with Store.open(tmp_path / "s.db", create=True) as store:
        report = asyncio.run(roll_out("r", [env], policy, store, RolloutPlan(tasks=1, max_tokens=400)))
        assert store.verify() == []
        [group] = store.groups(report.run)
    [made] = group.trajectories
    return made


def test_a_rollout_keeps_what_protected_the_host_from_it(tmp_path: Path) -> None:
    path = task_bundle(tmp_path / "work", grader='kind = "command"\n', more={"tests/test.sh": PAYS})
    said = ("First.\n```bash\necho done > out.txt; cat out.txt\n```", "Finished.")
    made = stored(path, ScriptedPolicy("worker", lambda env, task: said), tmp_path)
    assert (made.status, made.reward, len(made.turns)) == (Status.FINISHED, 1.0, 2)
    assert {"user-namespace", "pid-namespace", "network-namespace", "seccomp", "rlimits"} <= set(made.protections)
    assert [message.role for message in made.transcript] == ["user", "assistant", "user", "assistant"]
    assert made.transcript[2].content == "[exit code 0]\ndone\n"
    first, second = made.turns
    assert second.prompt_ids[: len(first.prompt_ids)] == first.prompt_ids


def test_a_reply_runs_nothing_of_the_agents_and_needs_no_protection(tmp_path: Path) -> None:
    made = stored(task_bundle(tmp_path / "sum"), scripted("gold"), tmp_path)
    assert (made.reward, made.protections) == (1.0, ())
    made = stored(task_bundle(tmp_path / "other/sum"), scripted("null"), tmp_path / "other")
    assert made.reward == 0.0
