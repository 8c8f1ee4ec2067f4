"""The model contract: prompt ids in; sampled ids, their log-probabilities and policy versions out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from palestra.types import Completion, Message, SamplingParams, Task

if TYPE_CHECKING:
    from palestra.envs.base import Environment


class Renderer(Protocol):
    """Messages to token ids and back. Sampled ids are only ever decoded for reading, never encoded again."""

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids that ask the assistant to answer ``messages``."""
        ...

    def extend(
        self, prompt: tuple[int, ...], completion: tuple[int, ...], messages: Sequence[Message]
    ) -> tuple[int, ...]:
        """Ids of the next prompt: ``prompt`` and ``completion`` as they are, then only the new ``messages`` encoded."""
        ...

    def answer(self, text: str) -> tuple[int, ...]:
        """Ids of an assistant turn that says ``text``, end-of-turn included."""
        ...

    def text(self, completion: Sequence[int]) -> str:
        """What an assistant turn says, end-of-turn left out; bytes that are no UTF-8 become U+FFFD."""
        ...


class Sampler(Protocol):
    async def sample(self, prompt: tuple[int, ...], n: int, params: SamplingParams) -> list[Completion]:
        """``n`` completions of one prompt; completion i uses the stream of ``params.seed + i``. Raises ModelError."""
        ...


class Policy(Protocol):
    """Something that answers: a model, or a script.

    A model is its own sampler. A script has to know which task it answers, so every rollout asks ``bind`` for a
    sampler.
    """

    @property
    def name(self) -> str: ...

    @property
    def renderer(self) -> Renderer: ...

    @property
    def context_tokens(self) -> int | None:
        """Most tokens of prompt and completion together; None without a limit."""
        ...

    def bind(self, env: Environment, task: Task) -> Sampler: ...
