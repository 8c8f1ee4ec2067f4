"""A Harbor task's own ``tests/test.sh``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from palestra.config import Config
from palestra.envs.graders.base import Grader, Place
from palestra.verify.command import LIMITS, Command
from palestra.verify.forkers import Forkers


class CommandSpec(Config):
    """As ``verify.command.Command``; the whole workspace is what it grades."""

    kind: Literal["command"] = "command"
    script: str = "test.sh"
    timeout_s: float = Field(default=600.0, gt=0)
    work: tuple[str, ...] = (".",)

    @property
    def artifacts(self) -> tuple[str, ...]:
        return self.work

    def grader(self, place: Place) -> Grader:
        limits = replace(LIMITS, wall_s=self.timeout_s, cpu_s=self.timeout_s)
        return Command(place.tests, self.script, place.workdir, place.packages, place.env, limits)

    def hidden(self, tests: Path) -> Sequence[str]:
        return []

    def forks(self, packages: Sequence[str], env: Mapping[str, str]) -> Forkers | None:
        return None
