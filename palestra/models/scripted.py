"""Policies that follow a script: the gold answer, nothing, a constant. They ship as fakes, for tests and for gates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from palestra.errors import ModelError, nearest
from palestra.models.client import Renderer
from palestra.models.render import ByteRenderer
from palestra.types import Completion, SamplingParams, Task

if TYPE_CHECKING:
    from palestra.envs.base import Environment

Script = Callable[["Environment", Task], str | tuple[str, ...]]
"""What is said in a task: one text, or one for each turn (the last again where there are more turns)."""

SCRIPTS: dict[str, Script] = {
    "gold": lambda env, task: env.gold(task),
    "null": lambda env, task: "",
    "echo": lambda env, task: task.messages[-1].content,
}


@dataclass(frozen=True)
class ScriptedPolicy:
    """Answers each task with ``script(env, task)``. Its tokens carry no log-probabilities: nobody sampled them."""

    name: str
    script: Script
    renderer: Renderer = field(default_factory=ByteRenderer)
    context_tokens: int | None = None

    def bind(self, env: Environment, task: Task) -> _Line:
        said = self.script(env, task)
        lines = (said,) if isinstance(said, str) else said
        return _Line([self.renderer.answer(line) for line in lines])


@dataclass
class _Line:
    lines: list[tuple[int, ...]]

    async def sample(self, prompt: tuple[int, ...], n: int, params: SamplingParams) -> list[Completion]:
        ids = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
        return [Completion(ids, None, (0,) * len(ids), "stop")] * n


def scripted(name: str) -> ScriptedPolicy:
    """The scripted policy ``name``; ModelError with the choices where there is none."""
    if name not in SCRIPTS:
        raise ModelError(f"scripted:{name}: no such script; {nearest(name, SCRIPTS)}")
    return ScriptedPolicy(f"scripted:{name}", SCRIPTS[name])
