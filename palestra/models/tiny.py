"""A small decoder-only transformer in plain torch: RMSNorm, rotary positions, SwiGLU, tied embeddings.

It reads bytes, so it needs no tokenizer; with its default size (0.5 M parameters) it trains from scratch in a minute on
two cores. A token's embedding is the sum of its own and, from tables of their own, those of the tokens just before it
(its *window*): copying is what most code does to its input, and with the neighbours at hand one attention layer finds
the place to copy from, where bytes alone need two layers and many times the training (measured in docs/lab.md).

One set of weights serves three calls: ``forward`` (training, any attention mask), ``prefill`` and ``decode``
(generation with a key-value cache). Axes: B rows, T tokens, Q tokens asked about, W window, P prompt tokens, G samples
of one prompt, H heads, D width of a head, C channels, V vocabulary, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class TinyConfig:
    """Sizes. ``padding`` is the id that stands before the first token in its window.

    window  tokens whose embeddings are summed: the token itself and the ``window − 1`` before it
    hidden  width of the SwiGLU;  rotary_base  longest wavelength / 2π
    """

    vocab: int = 262
    padding: int = 261
    window: int = 3
    layers: int = 2
    channels: int = 128
    heads: int = 8
    hidden: int = 344
    rotary_base: float = 10_000.0

    @property
    def head_width(self) -> int:
        return self.channels // self.heads


class Prompts(NamedTuple):
    """What ``prefill`` leaves: keys and values per layer, [B, P, H, D], the prompts' real lengths [B], and the hidden
    state of each one's last token [B, C]."""

    keys: list[Tensor]
    values: list[Tensor]
    lengths_B: Tensor
    hidden_BC: Tensor


class Cache(NamedTuple):
    """Keys and values of groups being decoded, per layer [B, H, S, D], in S = P + G·T slots: those of the prompt, once
    for the group; then, token after token, one for each of its G samples. ``bias_B1GS`` is 0 where sample g may look
    (its prompt, its own tokens) and −inf elsewhere, so that a group's attention is one product of dense matrices.
    ``width`` is P."""

    keys: list[Tensor]
    values: list[Tensor]
    bias_B1GS: Tensor
    lengths_B: Tensor
    width: int

    @property
    def samples(self) -> int:
        return self.bias_B1GS.shape[2]

    def of(self, is_kept_B: Tensor, tokens: int) -> Cache:
        """The cache of some groups, each of whose samples has ``tokens`` tokens in it; no other slot is copied."""
        used = self.width + tokens * self.samples

        def kept(layer: Tensor) -> Tensor:
            made = layer.new_empty(int(is_kept_B.sum()), *layer.shape[1:])
            made[:, :, :used] = layer[:, :, :used][is_kept_B]
            return made

        keys, values = (list(map(kept, each)) for each in (self.keys, self.values))
        return Cache(keys, values, self.bias_B1GS[is_kept_B], self.lengths_B[is_kept_B], self.width)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding (arXiv:2104.09864): turn each pair (x_i, x_{i+D/2}) by its position's angle."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def _attended(q: Tensor, k: Tensor, v: Tensor, **how: Any) -> Tensor:
    """Softmax attention of queries [B, Q, H, D] to keys and values [B, T, H, D]: [B, Q, H, D]."""
    return F.scaled_dot_product_attention(*(each.transpose(1, 2) for each in (q, k, v)), **how).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        c = config.channels
        self.heads, self.head_width = config.heads, config.head_width
        self.norm_attention, self.norm_mlp = nn.RMSNorm(c, eps=1e-6), nn.RMSNorm(c, eps=1e-6)
        self.q, self.kv = nn.Linear(c, c, bias=False), nn.Linear(c, 2 * c, bias=False)
        self.out = nn.Linear(c, c, bias=False)
        self.gate_up = nn.Linear(c, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, c, bias=False)

    def queries(self, normed: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotated queries [..., H, D] of normed x [..., C]."""
        return rotate(self.q(normed).unflatten(-1, (self.heads, self.head_width)), cos, sin)

    def keys_values(self, normed: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated keys, and values, each [..., H, D], of normed x [..., C]."""
        k, v = self.kv(normed).unflatten(-1, (2, self.heads, self.head_width)).unbind(-3)
        return rotate(k, cos, sin), v

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Residuals after attention [..., H, D] and after the SwiGLU."""
        x = x + self.out(attended.flatten(-2))
        gate, up = self.gate_up(self.norm_mlp(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class TinyLM(nn.Module):
    def __init__(self, config: TinyConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or TinyConfig()
        self.embed = nn.ModuleList(nn.Embedding(config.vocab, config.channels) for _ in range(config.window))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.channels, eps=1e-6)
        half = config.head_width // 2
        self.register_buffer("frequencies", config.rotary_base ** (-torch.arange(half) / half), persistent=False)
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Normal(0, 0.02) everywhere, residual projections scaled by 1/√(2L); norms at one. Fixed by ``seed``."""
        generator = torch.Generator().manual_seed(seed)
        residual = 0.02 / (2 * self.config.layers) ** 0.5
        for name, weight in self.named_parameters():
            if weight.dim() == 1:
                nn.init.ones_(weight)
            else:
                std = residual if name.endswith(("out.weight", "down.weight")) else 0.02
                nn.init.normal_(weight, std=std, generator=generator)

    def _angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin [..., 1, D/2] (the 1 is for heads) at integer positions [...]."""
        angles = positions.unsqueeze(-1).unsqueeze(-1) * self.frequencies
        return angles.cos(), angles.sin()

    def _embedded(self, windows: Tensor) -> Tensor:
        """Embeddings [..., C] of windows [..., W], oldest token first, the token itself last."""
        return sum(table(windows[..., -1 - back]) for back, table in enumerate(self.embed))

    def windows(self, ids: Tensor) -> Tensor:
        """Windows [..., T, W] of plain sequences [..., T]."""
        return F.pad(ids, (self.config.window - 1, 0), value=self.config.padding).unfold(-1, self.config.window, 1)

    def forward(
        self, windows_BTW: Tensor, positions_BT: Tensor, is_visible_BTT: Tensor, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """Final hidden states [B, T, C], or [B, Q, C] of the tokens ``asked_BQ`` (their places) alone.

        ``is_visible_BTT[b, q, k]``: token q may look at token k. Of tokens that nobody asks about, the last block
        makes keys and values and no more: with long prompts that saves a third of the work.
        """
        x = self._embedded(windows_BTW)
        cos, sin = self._angles(positions_BT)
        mask = is_visible_BTT
        for block in self.blocks:
            normed = block.norm_attention(x)
            k, v = block.keys_values(normed, cos, sin)
            if block is self.blocks[-1] and asked_BQ is not None:
                row_B1 = torch.arange(len(x)).unsqueeze(-1)
                x, normed, cos, sin, mask = (each[row_B1, asked_BQ] for each in (x, normed, cos, sin, mask))
            q = block.queries(normed, cos, sin)
            x = block.finish(x, _attended(q, k, v, attn_mask=mask.unsqueeze(1)))
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Next-token logits [..., V] of hidden states [..., C]."""
        return F.linear(hidden, self.embed[0].weight)

    def prefill(self, ids_BP: Tensor, lengths_B: Tensor) -> Prompts:
        """Read right-padded prompts once. Every prompt has at least one token."""
        positions_BP = torch.arange(ids_BP.shape[1]).expand_as(ids_BP)
        cos, sin = self._angles(positions_BP)
        is_causal_PP = torch.ones(2 * ids_BP.shape[-1:], dtype=torch.bool).tril()
        at_B, row_B = lengths_B - 1, torch.arange(len(ids_BP))
        x, mask = self._embedded(self.windows(ids_BP)), is_causal_PP.expand(len(ids_BP), -1, -1)
        keys, values = [], []
        for block in self.blocks:
            normed = block.norm_attention(x)
            k, v = block.keys_values(normed, cos, sin)
            keys.append(k)
            values.append(v)
            if block is self.blocks[-1]:  # only the last token's state is asked for
                x, normed, cos, sin, mask = (each[row_B, at_B].unsqueeze(1) for each in (x, normed, cos, sin, mask))
            x = block.finish(x, _attended(block.queries(normed, cos, sin), k, v, attn_mask=mask.unsqueeze(1)))
        return Prompts(keys, values, lengths_B, self.norm(x).squeeze(1))

    def start_samples(self, prompts: Prompts, samples: int, max_tokens: int) -> Cache:
        """A cache for ``samples`` continuations of each prompt, of ``max_tokens`` tokens each."""
        batch, width, heads, head_width = prompts.keys[0].shape
        slots = width + samples * max_tokens
        keys, values = ([x.new_empty(batch, heads, slots, head_width) for x in each] for each in prompts[:2])
        for empty, full in zip((*keys, *values), (*prompts.keys, *prompts.values), strict=True):
            empty[:, :, :width] = full.transpose(1, 2)
        is_prompt_BP = torch.arange(width) < prompts.lengths_B[:, None]
        is_own_GS = torch.eye(samples, dtype=torch.bool).repeat(1, max_tokens)
        sees_BGS = torch.cat((is_prompt_BP[:, None].expand(-1, samples, -1), is_own_GS.expand(batch, -1, -1)), -1)
        bias_B1GS = torch.zeros(batch, 1, samples, slots).masked_fill(~sees_BGS.unsqueeze(1), float("-inf"))
        return Cache(keys, values, bias_B1GS, prompts.lengths_B, width)

    def decode(self, windows_BGW: Tensor, at: int, cache: Cache) -> Tensor:
        """Hidden states [B, G, C] after feeding the ``at``-th own token of each sample, which joins the cache."""
        samples = cache.samples
        first = cache.width + at * samples
        cos, sin = self._angles((cache.lengths_B + at)[:, None])
        bias = cache.bias_B1GS[..., : first + samples]
        x = self._embedded(windows_BGW)
        for block, keys, values in zip(self.blocks, cache.keys, cache.values, strict=True):
            normed = block.norm_attention(x)
            q = block.queries(normed, cos, sin)
            for slots, new in zip((keys, values), block.keys_values(normed, cos, sin), strict=True):
                slots[:, :, first : first + samples] = new.transpose(1, 2)
            seen = (each[:, :, : first + samples].transpose(1, 2) for each in (keys, values))
            x = block.finish(x, _attended(q, *seen, attn_mask=bias))
        return self.norm(x)
