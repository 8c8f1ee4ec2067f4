"""A bad rollout is data: every fault has its status, keeps what was said, and never becomes a score."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from palestra.errors import SandboxError
from palestra.models.render import ByteRenderer
from palestra.models.scripted import scripted
from palestra.rollouts.agent import rollout
from palestra.rollouts.groups import plan_group, run_groups
from palestra.types import Completion, SamplingParams, Status, Trajectory, Unscored
from tests.toy import EchoEnvironment

RENDER = ByteRenderer()


@dataclass(frozen=True)
class Broken:
    """A policy that fails: with an error of its own, one of ours, or a completion cut at its limit."""

    error: BaseException | None = None
    ids: tuple[int, ...] = ()
    name: str = "broken"
    renderer: ByteRenderer = RENDER
    context_tokens: int | None = None

    def bind(self, env: object, task: object) -> Broken:
        return self

    async def sample(self, prompt: tuple[int, ...], n: int, params: SamplingParams) -> list[Completion]:
        if self.error is not None:
            raise self.error
        return [Completion(self.ids, (0.0,) * len(self.ids), (0,) * len(self.ids), "length")]


def run(env: EchoEnvironment, policy: object) -> Trajectory:
    task = next(env.tasks("train", 3))
    return asyncio.run(rollout(env, task, policy, SamplingParams(), id="r", index=0))  # type: ignore[arg-type]


def test_gold_scores_one_null_scores_zero() -> None:
    gold, null = run(EchoEnvironment(), scripted("gold")), run(EchoEnvironment(), scripted("null"))
    assert (gold.status, gold.reward, gold.transcript[-1].content) == (Status.FINISHED, 1.0, "3")
    assert (null.status, null.reward) == (Status.FINISHED, 0.0)


@pytest.mark.parametrize(
    ("env", "policy", "status", "says"),
    [
        (EchoEnvironment(breaks="open"), scripted("gold"), Status.ENVIRONMENT_ERROR, "opening train-3: RuntimeError"),
        (EchoEnvironment(breaks="grade"), scripted("gold"), Status.GRADER_ERROR, "grading train-3: KeyError"),
        (EchoEnvironment(breaks="unscored"), scripted("gold"), Status.GRADER_ERROR, "the judge was out"),
        (EchoEnvironment(), Broken(ValueError("no weights")), Status.MODEL_ERROR, "sampling from broken: ValueError"),
        (EchoEnvironment(), Broken(SandboxError("no bwrap")), Status.SANDBOX_ERROR, "no bwrap"),
    ],
)
def test_faults_are_typed_and_unscored(env: EchoEnvironment, policy: object, status: Status, says: str) -> None:
    made = run(env, policy)
    assert made.status is status
    assert isinstance(made.score, Unscored)
    assert made.reward is None
    assert says in str(made.error)


def test_what_was_said_before_a_fault_is_kept() -> None:
    made = run(EchoEnvironment(breaks="grade"), scripted("gold"))
    assert len(made.turns) == 1
    assert made.transcript[-1].content == "3"


def test_an_answer_cut_at_its_limit_is_truncated() -> None:
    assert run(EchoEnvironment(), Broken(ids=(51,))).status is Status.TRUNCATED


def test_later_prompts_extend_the_ids_that_were_seen() -> None:
    made = run(EchoEnvironment(turns=3), scripted("gold"))
    assert len(made.turns) == 3
    for before, after in zip(made.turns, made.turns[1:], strict=False):
        seen = before.prompt_ids + before.completion.ids
        assert after.prompt_ids[: len(seen)] == seen


def test_cancellation_is_not_swallowed() -> None:
    with pytest.raises(asyncio.CancelledError):
        run(EchoEnvironment(), Broken(asyncio.CancelledError()))


def test_groups_come_back_in_order_with_seeds_of_their_own() -> None:
    env = EchoEnvironment()
    stream = env.tasks("train", 0)
    plans = [plan_group("run", 0, step, at, next(stream), 4) for step in range(2) for at in range(5)]
    assert len({plan.seed for plan in plans}) == len({plan.id for plan in plans}) == 10
    again = [plan_group("other", 0, plan.step, at % 5, plan.task, 4) for at, plan in enumerate(plans)]
    assert [plan.seed for plan in again] == [plan.seed for plan in plans], "samples do not depend on the run's name"
    asked: list[int] = []

    class Asking(Broken):
        async def sample(self, prompt: tuple[int, ...], n: int, params: SamplingParams) -> list[Completion]:
            asked.append(params.seed)
            return await super().sample(prompt, n, params)

    made = asyncio.run(run_groups({env.id: env}, plans, Asking(ids=(1,)), SamplingParams(), concurrency=3))  # type: ignore[dict-item]
    assert [group.id for group in made] == [plan.id for plan in plans]
    assert [t.index for t in made[0].trajectories] == [0, 1, 2, 3]
    assert len(set(asked)) == 40, "no two rollouts share a stream"
