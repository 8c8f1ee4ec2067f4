"""Samplers choose the next task. Their whole state is how many they have drawn, so that a resumed run goes on
exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from palestra.envs.base import Environment
from palestra.errors import ConfigError
from palestra.types import Task


class UniformSampler:
    """Every environment once per round, in a fresh order each round; each one's tasks in its own seeded order.

    ``split`` must be one that never ends in each environment. Raises ConfigError when there is no environment, or
    one runs out.
    """

    def __init__(self, envs: Sequence[Environment], *, split: str, seed: int) -> None:
        if not envs:
            raise ConfigError("there is no environment to draw tasks from; name at least one certified bundle")
        self.drawn = 0
        self._draws = self._stream(list(envs), split, seed)

    def draw(self, n: int) -> list[Task]:
        self.drawn += n
        return [next(self._draws) for _ in range(n)]

    def state_dict(self) -> dict[str, Any]:
        return {"drawn": self.drawn}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go forward to a saved state of an equal sampler that was there before."""
        self.draw(int(state["drawn"]) - self.drawn)

    @staticmethod
    def _stream(envs: list[Environment], split: str, seed: int) -> Iterator[Task]:
        rng = Random(seed)
        tasks = {env.spec.id: env.tasks(split, seed) for env in envs}
        while True:
            rng.shuffle(envs)
            for env in envs:
                task = next(tasks[env.spec.id], None)
                if task is None:
                    raise ConfigError(
                        f"{env.spec.id}: its split {split!r} ran out of tasks; training draws without end"
                    )
                yield task
