"""The values that pass between Palestra's parts.

Every type here is a frozen dataclass of plain data: comparable with ``==``, hashable where its fields are, and
serialisable with ``to_plain`` / ``from_plain``. This module imports nothing else of ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Literal, TypeVar

Role = Literal["system", "user", "assistant", "tool"]
Facts = Mapping[str, Any]
"""Plain JSON data with string keys."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call as the model wrote it. ``arguments`` is its JSON text: re-serialising would change tokens."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One problem of an environment.

    id        unique within the environment; equal for the same problem whatever seed drew it
    env       id of the environment that made it
    split     "train", "validation" or "heldout"
    seed      the seed that drew it (0 where the task is not drawn)
    messages  what the agent is shown
    facts     what the grader needs; never shown to the agent
    difficulty  in [0, 1], or None when unknown
    """

    id: str
    env: str
    split: str
    seed: int
    messages: tuple[Message, ...]
    facts: Facts = field(default_factory=dict)
    difficulty: float | None = None


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a policy is asked.

    temperature  0 is greedy; log-probabilities are always those of the distribution sampled from (for greedy: T = 1)
    max_tokens   sampled tokens at most, end-of-turn token included
    seed         the sampler draws token t from a counter-based stream of (seed, t): no other request changes it
    """

    temperature: float = 1.0
    max_tokens: int = 64
    seed: int = 0


FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class Completion:
    """What a sampler produced: ids, log-probability of each under the sampling distribution (natural log), and
    the policy version that sampled each. ``logprobs`` is None only where a source cannot give them (text-only)."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    versions: tuple[int, ...]
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class Turn:
    """One policy call, exactly as the model saw and answered it: token ids, never re-encoded text."""

    prompt_ids: tuple[int, ...]
    completion: Completion


@dataclass(frozen=True, slots=True)
class Action:
    """What the agent does: one assistant message (its text, its tool calls)."""

    message: Message


@dataclass(frozen=True, slots=True)
class Step:
    """What the world answers. ``terminated``: the episode is over by its own rules; ``truncated``: it was cut off.
    ``protections``: of the sandbox in which the action ran, where it ran in one."""

    observation: tuple[Message, ...]
    reward: float
    terminated: bool
    truncated: bool
    info: Facts = field(default_factory=dict)
    protections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a grader may see of a finished session."""

    transcript: tuple[Message, ...]
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    state: Facts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict: ``value`` in [0, 1], named ``components`` in [0, 1], and the ``evidence`` for it in words."""

    value: float
    components: Mapping[str, float] = field(default_factory=dict)
    evidence: str = ""

    def __post_init__(self) -> None:
        for name, value in {"value": self.value, **self.components}.items():
            if not 0.0 <= value <= 1.0:  # also refuses NaN
                raise ValueError(f"score {name!r} must be in [0, 1], got {value!r}")


@dataclass(frozen=True, slots=True)
class Unscored:
    """No verdict, and why. Never a 0: a grader's own failure says nothing about the answer."""

    reason: str


class Status(StrEnum):
    """How a rollout ended. All but FINISHED and TRUNCATED are faults of the infrastructure, and never trained on."""

    FINISHED = "finished"
    TRUNCATED = "truncated"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    MODEL_ERROR = "model_error"
    ENVIRONMENT_ERROR = "environment_error"
    SANDBOX_ERROR = "sandbox_error"
    GRADER_ERROR = "grader_error"

    @property
    def is_sound(self) -> bool:
        return self in (Status.FINISHED, Status.TRUNCATED)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout: what was said, token for token, how it ended and what it scored.

    index     position in its group
    versions of every sampled token stand in its turns; a text-only rollout has no turns, only a transcript
    error     one sentence, where status is a fault
    seconds   wall-clock seconds of the rollout (excluded from comparisons of reproducibility)
    protections  what stood between the agent's commands and the host, by the sandbox's own word; empty where nothing
                 of the agent's ran
    """

    id: str
    task: Task
    index: int
    turns: tuple[Turn, ...]
    transcript: tuple[Message, ...]
    score: Score | Unscored
    status: Status
    error: str | None = None
    seconds: float = field(default=0.0, compare=False)
    protections: tuple[str, ...] = ()

    @property
    def reward(self) -> float | None:
        """The score's value, or None when unscored."""
        return self.score.value if isinstance(self.score, Score) else None


@dataclass(frozen=True, slots=True)
class Group:
    """The rollouts of one task that are compared with each other. ``step`` is the trainer step they were made for."""

    id: str
    task: Task
    step: int
    trajectories: tuple[Trajectory, ...]


T = TypeVar("T")


@cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter  # here, not above: importing this module stays free of third parties

    adapter: Any = TypeAdapter
    return adapter(kind)


def to_plain(value: Any) -> Any:
    """A value of this module as JSON-ready plain data."""
    kind: Any = type(value)
    return _adapter(kind).dump_python(value, mode="json")


def from_plain(kind: type[T], data: Any) -> T:
    """The inverse of ``to_plain``. Raises pydantic.ValidationError where ``data`` is not a ``kind``."""
    key: Any = kind
    result: T = _adapter(key).validate_python(data)
    return result
