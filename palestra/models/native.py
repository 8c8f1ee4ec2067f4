"""The native engine: samples from a torch model in this process, with the weights that the trainer trains.

Requests that arrive together are answered together: a prompt is read once however many rollouts share it, and all its
samples decode in one batch over a key-value cache. Publishing new weights costs no copy, as there is only one set.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from palestra.envs.base import Environment
from palestra.errors import ModelError
from palestra.models.render import ByteRenderer
from palestra.models.tiny import Cache, PromptState, TinyLM
from palestra.models.workers import spread_over
from palestra.types import Completion, SamplingParams, Task

ROWS_AT_ONCE = 1024
"""Samples decoded in one batch; more wait for the next."""
SHED_EVERY = 4
"""Decode steps between two looks for prompts whose samples have all ended, which then leave the batch."""


@dataclass
class EngineStats:
    """Totals since the start: sampled tokens, prompt tokens read, prompt tokens shared instead of read, seconds."""

    sampled_tokens: int = 0
    prompt_tokens: int = 0
    shared_prompt_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _Request:
    prompt: tuple[int, ...]
    n: int
    params: SamplingParams
    answer: asyncio.Future[list[Completion]] = field(compare=False)


class NativePolicy:
    """A torch model as a policy. ``version`` counts the optimiser steps that made its weights; ``workers`` threads
    share the prompts of a batch.

    Raises ModelError for an empty prompt, one longer than ``context_tokens`` allows, or weights that yield no finite
    distribution.
    """

    def __init__(
        self,
        model: TinyLM,
        *,
        name: str = "native:tiny",
        version: int = 0,
        context_tokens: int = 512,
        workers: int = 1,
    ):
        self.model, self.name, self.version, self.workers = model, name, version, workers
        self.context_tokens: int | None = context_tokens
        self.renderer = ByteRenderer()
        self.stats = EngineStats()
        self._waiting: list[_Request] = []
        self._serving: asyncio.Task[None] | None = None

    def bind(self, env: Environment, task: Task) -> NativePolicy:
        return self

    async def sample(self, prompt: tuple[int, ...], n: int, params: SamplingParams) -> list[Completion]:
        self._check(prompt, n, params)
        request = _Request(prompt, n, params, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await request.answer

    def _check(self, prompt: tuple[int, ...], n: int, params: SamplingParams) -> None:
        if not prompt or n < 1 or params.max_tokens < 1:
            raise ModelError(
                f"{self.name}: a request needs a prompt, n >= 1 and max_tokens >= 1, "
                f"got {len(prompt)} tokens, {n}, {params.max_tokens}"
            )
        if self.context_tokens is not None and len(prompt) + params.max_tokens > self.context_tokens:
            raise ModelError(
                f"{self.name}: prompt of {len(prompt)} tokens + max_tokens {params.max_tokens} exceeds its context of "
                f"{self.context_tokens}; shorten the prompt or lower max_tokens"
            )

    async def _serve(self) -> None:
        """Answer what waits, batch by batch, until nothing does."""
        while self._waiting:
            await asyncio.sleep(0)  # everyone who is ready to ask gets to ask first
            batch, rows = [], 0
            while self._waiting and (not batch or rows + self._waiting[0].n <= ROWS_AT_ONCE):
                batch.append(self._waiting.pop(0))
                rows += batch[-1].n
            try:
                answers = self.generate([(r.prompt, r.n, r.params) for r in batch])
            except Exception as error:
                for request in batch:
                    if not request.answer.done():
                        request.answer.set_exception(error)
                continue
            for request, answer in zip(batch, answers, strict=True):
                if not request.answer.done():
                    request.answer.set_result(answer)

    def generate(self, requests: Sequence[tuple[tuple[int, ...], int, SamplingParams]]) -> list[list[Completion]]:
        """Answer requests (prompt, n, params) now, in one go; the same order comes back."""
        start = time.perf_counter()
        samples: dict[tuple[int, ...], list[_Sample]] = defaultdict(list)
        answers = []
        for prompt, n, params in requests:
            mine = [_Sample(params.seed + i, params) for i in range(n)]
            samples[prompt] += mine
            answers.append(mine)
        by_size: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for prompt, group in samples.items():
            by_size[len(group)].append(prompt)
        chunks = []
        for size, prompts in by_size.items():
            width = max(1, min(ROWS_AT_ONCE // size, -(-len(prompts) // self.workers)))
            chunks += [prompts[at : at + width] for at in range(0, len(prompts), width)]
        for _ in spread_over(self.workers, lambda chunk: self._decode(chunk, [samples[p] for p in chunk]), chunks):
            pass
        self._count(samples, time.perf_counter() - start)
        return [[sample.completion(self.version) for sample in mine] for mine in answers]

    def _count(self, samples: dict[tuple[int, ...], list[_Sample]], seconds: float) -> None:
        for prompt, group in samples.items():
            self.stats.prompt_tokens += len(prompt)
            self.stats.shared_prompt_tokens += len(prompt) * (len(group) - 1)
            self.stats.sampled_tokens += sum(len(sample.ids) for sample in group)
        self.stats.seconds += seconds

    @torch.inference_mode()
    def _decode(self, prompts: list[tuple[int, ...]], groups: list[list[_Sample]]) -> None:
        """Continue each prompt once for each sample of its group; all groups are of one size."""
        model = self.model
        lengths_B = torch.tensor([len(prompt) for prompt in prompts])
        ids_BP = torch.full((len(prompts), int(lengths_B.max())), self.renderer.padding)
        for row, prompt in enumerate(prompts):
            ids_BP[row, : len(prompt)] = torch.tensor(prompt)
        state = model.prefill(ids_BP, lengths_B)
        longest = max(sample.params.max_tokens for group in groups for sample in group)
        own = model.start_samples(state, len(groups[0]), longest)
        hidden_BGC = state.hidden_BC[:, None].expand(-1, len(groups[0]), -1)
        last_BW = model.windows(ids_BP)[torch.arange(len(prompts)), lengths_B - 1]
        windows_BGW = last_BW[:, None].expand(-1, len(groups[0]), -1)
        for at in range(longest):
            ids_BG = self._draw(model.logits(hidden_BGC), groups, at)
            windows_BGW = torch.cat((windows_BGW[..., 1:], ids_BG.unsqueeze(-1)), dim=-1)
            if at % SHED_EVERY == SHED_EVERY - 1:
                groups, windows_BGW, state, own = _shed(groups, windows_BGW, state, own)
            if not groups or all(sample.ended for group in groups for sample in group):
                return
            if at + 1 < longest:
                hidden_BGC = model.decode(windows_BGW, at, state, own)

    def _draw(self, logits_BGV: Tensor, groups: list[list[_Sample]], at: int) -> Tensor:
        """Sample one token each, by inverse CDF from the sample's own stream, and record its log-probability."""
        samples = [sample for group in groups for sample in group]
        temperature_N1 = torch.tensor([s.params.temperature for s in samples]).unsqueeze(-1)
        is_greedy_N = temperature_N1.squeeze(-1) == 0
        logprobs_NV = (logits_BGV.flatten(0, 1) / temperature_N1.masked_fill(temperature_N1 == 0, 1.0)).log_softmax(-1)
        if not bool(torch.isfinite(logprobs_NV.sum())):
            raise ModelError(
                f"{self.name}: version {self.version} yields no finite distribution; its weights are damaged"
            )
        uniform_N = torch.from_numpy(uniforms(np.array([s.seed for s in samples], dtype=np.uint64), at))
        cumulative_NV = logprobs_NV.double().exp().cumsum(-1)
        drawn_N = torch.searchsorted(cumulative_NV, (uniform_N * cumulative_NV[:, -1])[:, None], right=True).squeeze(-1)
        ids_N = torch.where(is_greedy_N, logprobs_NV.argmax(-1), drawn_N.clamp_max(logprobs_NV.shape[-1] - 1))
        chosen_N = logprobs_NV.gather(-1, ids_N.unsqueeze(-1)).squeeze(-1)
        for sample, token, logprob in zip(samples, ids_N.tolist(), chosen_N.tolist(), strict=True):
            sample.take(token, logprob, self.renderer.end)
        return ids_N.view(logits_BGV.shape[:2])


@dataclass
class _Sample:
    seed: int
    params: SamplingParams
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    has_stopped: bool = False

    @property
    def ended(self) -> bool:
        return self.has_stopped or len(self.ids) >= self.params.max_tokens

    def take(self, token: int, logprob: float, end: int) -> None:
        if not self.ended:
            self.ids.append(token)
            self.logprobs.append(logprob)
            self.has_stopped = token == end

    def completion(self, version: int) -> Completion:
        reason = "stop" if self.has_stopped else "length"
        return Completion(tuple(self.ids), tuple(self.logprobs), (version,) * len(self.ids), reason)


def _shed(
    groups: list[list[_Sample]], windows_BGW: Tensor, state: PromptState, own: Cache
) -> tuple[list[list[_Sample]], Tensor, PromptState, Cache]:
    """Drop the prompts whose samples have all ended."""
    alive = [row for row, group in enumerate(groups) if not all(sample.ended for sample in group)]
    if len(alive) > 0.9 * len(groups):
        return groups, windows_BGW, state, own  # copying the caches would cost more than it saves
    rows = torch.tensor(alive, dtype=torch.long)
    cache = Cache([k[rows] for k in state.cache.keys], [v[rows] for v in state.cache.values])
    state = PromptState(cache, state.lengths_B[rows], state.hidden_BC[rows])
    own = Cache([k[rows] for k in own.keys], [v[rows] for v in own.values])
    return [groups[row] for row in alive], windows_BGW[rows], state, own


def uniforms(seeds_N: np.ndarray, at: int) -> np.ndarray:
    """Uniform numbers in [0, 1), float64 [N]: the ``at``-th of each seed's stream (splitmix64 of seed and position).

    A number depends on its own seed and position alone, so a batch's make-up changes nobody's sample.
    """
    with np.errstate(over="ignore"):
        z = _mix(seeds_N + np.uint64(0x9E3779B97F4A7C15))
        z = _mix(z + np.uint64(at + 1) * np.uint64(0x9E3779B97F4A7C15))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
