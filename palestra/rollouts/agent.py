"""The agent loop, on one screen: observe, ask the policy, act, until the world or a limit says stop; then grade."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from palestra.envs.base import Environment
from palestra.errors import GraderError, ModelError, PalestraError, SandboxError, TaskError, boundary
from palestra.models.client import Policy
from palestra.types import Action, Message, Outcome, SamplingParams, Score, Status, Task, Trajectory, Turn, Unscored

FAULTS = {ModelError: Status.MODEL_ERROR, SandboxError: Status.SANDBOX_ERROR, GraderError: Status.GRADER_ERROR}
"""Which boundary broke, as a status; every other error is the environment's."""


@dataclass
class Episode:
    """What is known of a rollout so far; kept when it breaks off."""

    turns: list[Turn] = field(default_factory=list)
    transcript: list[Message] = field(default_factory=list)
    is_truncated: bool = False
    protections: tuple[str, ...] = ()


async def rollout(
    env: Environment, task: Task, policy: Policy, params: SamplingParams, *, id: str, index: int
) -> Trajectory:
    """Run and grade one rollout. A fault becomes the trajectory's status and error; only cancellation is raised."""
    start = time.perf_counter()
    episode = Episode()
    score: Score | Unscored
    try:
        outcome = await play(env, task, policy, params, episode)
        with boundary(GraderError, f"grading {task.id}"):
            score = await env.grade(task, outcome)
        status = Status.TRUNCATED if episode.is_truncated else Status.FINISHED
        error = None
        if isinstance(score, Unscored):
            status, error = Status.GRADER_ERROR, score.reason
    except PalestraError as fault:
        status, error = FAULTS.get(type(fault), Status.ENVIRONMENT_ERROR), str(fault)
        score = Unscored(error)
    seconds = time.perf_counter() - start
    turns, transcript = tuple(episode.turns), tuple(episode.transcript)
    return Trajectory(id, task, index, turns, transcript, score, status, error, seconds, episode.protections)


async def play(env: Environment, task: Task, policy: Policy, params: SamplingParams, episode: Episode) -> Outcome:
    """The loop itself. Every prompt extends the ids that the model saw and produced; nothing is encoded twice."""
    with boundary(TaskError, f"opening {task.id}"):
        session = await env.open(task)
    try:
        episode.transcript += session.observation
        with boundary(ModelError, f"asking {policy.name} about {task.id}"):
            sampler = policy.bind(env, task)
            prompt = policy.renderer.prompt(session.observation)
        for _ in range(env.spec.max_turns):
            with boundary(ModelError, f"sampling from {policy.name}"):
                [completion] = await sampler.sample(prompt, 1, params)
            episode.turns.append(Turn(prompt, completion))
            said = Message("assistant", policy.renderer.text(completion.ids))
            episode.transcript.append(said)
            with boundary(TaskError, f"acting in {task.id}"):
                step = await session.act(Action(said))
            episode.transcript += step.observation
            episode.protections = step.protections or episode.protections
            episode.is_truncated = step.truncated or completion.finish_reason == "length"
            if step.terminated or step.truncated:
                break
            prompt = policy.renderer.extend(prompt, completion.ids, step.observation)
        else:
            episode.is_truncated = True
        with boundary(TaskError, f"reading the outcome of {task.id}"):
            return await session.outcome()
    finally:
        await session.close()
