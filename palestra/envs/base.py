"""The environment contract: tasks, single-use sessions, and a grader that sees only the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from palestra.sandboxes.base import Sandbox
from palestra.types import Action, Message, Outcome, Score, Step, Task, Unscored

UNCERTIFIED = "uncertified"
"""Key of why an environment has no valid certificate: in its spec's facts, and in what is stored of a run."""


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """What an environment is.

    id           unique in a set of environments, e.g. "inflection.camelize"
    version      the content hash of its bundle, or a release number
    kind         "predict", "implement", …
    splits       names of its splits and the number of distinct tasks in each (None: unlimited)
    max_turns    policy calls at most in one session
    needs_sandbox  whether ``open`` must be given one
    facts        anything else a reader may want to know; UNCERTIFIED where it has no valid certificate
    """

    id: str
    version: str
    kind: str
    splits: Mapping[str, int | None]
    max_turns: int = 1
    needs_sandbox: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """One episode. Single use: after ``terminated`` or ``truncated``, only ``outcome`` and ``close`` may be called."""

    @property
    def observation(self) -> tuple[Message, ...]: ...

    async def act(self, action: Action) -> Step: ...

    async def outcome(self) -> Outcome: ...

    async def close(self) -> None: ...


class Environment(Protocol):
    @property
    def spec(self) -> EnvSpec: ...

    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        """Tasks of ``split``, in an order that ``seed`` fixes; the same arguments give the same tasks for ever."""
        ...

    async def open(self, task: Task, sandbox: Sandbox | None = None) -> Session: ...

    def gold(self, task: Task) -> str:
        """The assistant text of the reference solution."""
        ...

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored: ...


def uncertified(envs: Iterable[Environment]) -> dict[str, str]:
    """Why an environment has no valid certificate, by the id of each that has none: what a run that uses it keeps."""
    return {env.spec.id: str(env.spec.facts[UNCERTIFIED]) for env in envs if UNCERTIFIED in env.spec.facts}
