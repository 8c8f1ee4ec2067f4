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
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from palestra.errors import ModelError
from palestra.models.render import ByteRenderer
from palestra.models.tiny import TinyLM
from palestra.models.workers import spread_over
from palestra.types import Completion, SamplingParams, Task

if TYPE_CHECKING:
    from palestra.envs.base import Environment

ROWS_AT_ONCE = 1024
"""Samples decoded in one batch; more wait for the next."""
SHED_AT = 0.7
"""Share of prompts with an unfinished sample at which the others leave the batch; each time copies the cache."""


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
        model, size = self.model, len(groups[0])
        lengths_B = torch.tensor([len(prompt) for prompt in prompts])
        ids_BP = torch.full((len(prompts), int(lengths_B.max())), self.renderer.padding)
        for row, prompt in enumerate(prompts):
            ids_BP[row, : len(prompt)] = torch.tensor(prompt)
        read = model.prefill(ids_BP, lengths_B)
        drawing = _Drawing([sample for group in groups for sample in group], self.renderer.end)
        cache = model.start_samples(read, size, drawing.longest)
        hidden_BGC = read.hidden_BC[:, None].expand(-1, size, -1)
        last_BW = model.windows(ids_BP)[torch.arange(len(prompts)), lengths_B - 1]
        windows_BGW = last_BW[:, None].expand(-1, size, -1)
        for at in range(drawing.longest):
            ids_N = drawing.draw(self._logprobs(model.logits(hidden_BGC.flatten(0, 1)), drawing), at)
            windows_BGW = torch.cat((windows_BGW[..., 1:], ids_N.view(-1, size, 1)), dim=-1)
            is_alive_B = drawing.is_open_N.view(-1, size).any(-1)
            alive = int(is_alive_B.sum())
            if alive == 0:
                break
            if alive <= SHED_AT * len(is_alive_B):
                drawing.keep(is_alive_B.repeat_interleave(size))
                windows_BGW, cache = windows_BGW[is_alive_B], cache.of(is_alive_B, at)
            hidden_BGC = model.decode(windows_BGW, at, cache)
        drawing.tell()

    def _logprobs(self, logits_NV: Tensor, drawing: _Drawing) -> Tensor:
        """Log-probabilities that are sampled from, at each sample's temperature (greedy: 1)."""
        logprobs_NV = (logits_NV / drawing.divisor_N1).log_softmax(-1)
        if not bool(torch.isfinite(logprobs_NV.sum())):
            raise ModelError(
                f"{self.name}: version {self.version} yields no finite distribution; its weights are damaged"
            )
        return logprobs_NV


@dataclass
class _Sample:
    """One completion asked for; ``ids`` and ``logprobs`` are there when it is drawn."""

    seed: int
    params: SamplingParams
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    has_stopped: bool = False

    def completion(self, version: int) -> Completion:
        return Completion(self.ids, self.logprobs, (version,) * len(self.ids), "stop" if self.has_stopped else "length")


class _Drawing:
    """Samples being drawn, as arrays: N rows still in the batch, of the S that it began with.

    place_N  which of the S each row is;  is_open_N  whether it wants another token
    """

    def __init__(self, samples: list[_Sample], end: int) -> None:
        self.samples, self.end = samples, end
        self.most_N = torch.tensor([sample.params.max_tokens for sample in samples])
        self.longest = int(self.most_N.max())
        self.seeds_N = np.array([sample.seed for sample in samples], dtype=np.uint64)
        temperature_N1 = torch.tensor([[sample.params.temperature] for sample in samples])
        self.is_greedy_N = temperature_N1.squeeze(-1) == 0
        self.divisor_N1 = temperature_N1.masked_fill(temperature_N1 == 0, 1.0)
        self.is_open_N = self.most_N > 0
        self.place_N = torch.arange(len(samples))
        self._lengths_S = torch.zeros(len(samples), dtype=torch.long)
        self._ids_ST = torch.zeros(len(samples), self.longest, dtype=torch.long)
        self._logprobs_ST = torch.zeros(len(samples), self.longest)

    def draw(self, logprobs_NV: Tensor, at: int) -> Tensor:
        """Token ``at`` of every row, by inverse CDF from the sample's own stream; kept for those that are open."""
        uniform_N = torch.from_numpy(uniforms(self.seeds_N, at))
        cumulative_NV = logprobs_NV.double().exp().cumsum(-1)
        drawn_N = torch.searchsorted(cumulative_NV, (uniform_N * cumulative_NV[:, -1])[:, None], right=True).squeeze(-1)
        ids_N = torch.where(self.is_greedy_N, logprobs_NV.argmax(-1), drawn_N.clamp_max(logprobs_NV.shape[-1] - 1))
        self._ids_ST[self.place_N, at] = ids_N
        self._logprobs_ST[self.place_N, at] = logprobs_NV.gather(-1, ids_N.unsqueeze(-1)).squeeze(-1)
        self._lengths_S[self.place_N] += self.is_open_N
        self.is_open_N = self.is_open_N & (ids_N != self.end) & (at + 1 < self.most_N)
        return ids_N

    def keep(self, is_kept_N: Tensor) -> None:
        """Drop the other rows, all of which have ended."""
        self.seeds_N = self.seeds_N[is_kept_N.numpy()]
        for name in ("most_N", "is_greedy_N", "divisor_N1", "is_open_N", "place_N"):
            setattr(self, name, getattr(self, name)[is_kept_N])

    def tell(self) -> None:
        """Give every sample what was drawn for it."""
        drawn = (each.tolist() for each in (self._lengths_S, self._ids_ST, self._logprobs_ST))
        for sample, length, ids, logprobs in zip(self.samples, *drawn, strict=True):
            sample.ids, sample.logprobs = tuple(ids[:length]), tuple(logprobs[:length])
            sample.has_stopped = sample.ids[-1] == self.end


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
