"""Worlds small enough to reason about: an environment of single digits, and policies that misbehave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from palestra.envs.base import EnvSpec
from palestra.types import Action, Message, Outcome, Score, Step, Task, Unscored


@dataclass(frozen=True)
class EchoSession:
    observation: tuple[Message, ...]
    said: list[Message]
    turns: int

    async def act(self, action: Action) -> Step:
        self.said.append(action.message)
        is_over = len(self.said) >= self.turns
        again = () if is_over else (Message("user", "again"),)
        return Step(again, 0.0, terminated=is_over, truncated=False)

    async def outcome(self) -> Outcome:
        return Outcome((*self.observation, *self.said))

    async def close(self) -> None:
        return None


@dataclass(frozen=True)
class EchoEnvironment:
    """Say the shown digit. Task n of a split shows digit n mod 10; splits "train" (endless) and "heldout" (10)."""

    id: str = "toy.echo"
    turns: int = 1
    breaks: str = ""  # "open", "act", "grade", "unscored": where it fails

    @property
    def spec(self) -> EnvSpec:
        return EnvSpec(self.id, "1", "predict", {"train": None, "heldout": 10}, max_turns=self.turns)

    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        for n in count(seed) if split == "train" else range(10):
            shown = (Message("user", str(n % 10)),)
            yield Task(f"{split}-{n % 10}", self.id, split, seed, shown, {"expected": str(n % 10)})

    async def open(self, task: Task, sandbox: object = None) -> EchoSession:
        if self.breaks == "open":
            raise RuntimeError("the world is on fire")
        return EchoSession(task.messages, [], self.turns)

    def gold(self, task: Task) -> str:
        return str(task.facts["expected"])

    async def grade(self, task: Task, outcome: Outcome, sandbox: object = None) -> Score | Unscored:
        if self.breaks == "grade":
            raise KeyError("reward")
        if self.breaks == "unscored":
            return Unscored("the judge was out")
        return Score(float(outcome.transcript[-1].content == task.facts["expected"]))


@dataclass(frozen=True)
class ParityEnvironment(EchoEnvironment):
    """Right when the first character's code is even: an untrained policy is right half the time."""

    async def grade(self, task: Task, outcome: Outcome, sandbox: object = None) -> Score | Unscored:
        said = outcome.transcript[-1].content
        return Score(float(bool(said) and ord(said[0]) % 2 == 0))
