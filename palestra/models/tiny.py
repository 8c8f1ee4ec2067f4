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


class Cache(NamedTuple):
    """Keys and values per layer. Of a prompt: [B, H, P, D]; of samples being decoded: [B, G, H, T, D]."""

    keys: list[Tensor]
    values: list[Tensor]


class PromptState(NamedTuple):
    """What ``prefill`` leaves: the prompts' cache, their real lengths [B], and the last token's hidden state [B, C]."""

    cache: Cache
    lengths_B: Tensor
    hidden_BC: Tensor


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

    def queries(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Rotated queries [..., H, D] of x [..., C]."""
        return rotate(self.q(self.norm_attention(x)).unflatten(-1, (self.heads, self.head_width)), cos, sin)

    def keys_values(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated keys, and values, each [..., H, D], of x [..., C]."""
        k, v = self.kv(self.norm_attention(x)).unflatten(-1, (2, self.heads, self.head_width)).unbind(-3)
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
            k, v = block.keys_values(x, cos, sin)
            if block is self.blocks[-1] and asked_BQ is not None:
                row_B1 = torch.arange(len(x)).unsqueeze(-1)
                x, cos, sin, mask = (each[row_B1, asked_BQ] for each in (x, cos, sin, mask))
            q = block.queries(x, cos, sin)
            x = block.finish(x, _attended(q, k, v, attn_mask=mask.unsqueeze(1)))
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Next-token logits [..., V] of hidden states [..., C]."""
        return F.linear(hidden, self.embed[0].weight)

    def prefill(self, ids_BP: Tensor, lengths_B: Tensor) -> PromptState:
        """Read right-padded prompts once. Every prompt has at least one token."""
        width = ids_BP.shape[1]
        positions_P = torch.arange(width)
        cos, sin = self._angles(positions_P)
        x = self._embedded(self.windows(ids_BP))
        keys, values = [], []
        for block in self.blocks[:-1]:
            k, v = block.keys_values(x, cos, sin)
            keys.append(k.transpose(1, 2))
            values.append(v.transpose(1, 2))
            x = block.finish(x, _attended(block.queries(x, cos, sin), k, v, is_causal=True))
        last = self.blocks[-1]
        k, v = last.keys_values(x, cos, sin)
        is_prompt_B1P = positions_P < lengths_B[:, None, None]
        at_B = lengths_B - 1
        x = x[torch.arange(len(ids_BP)), at_B].unsqueeze(1)
        q = last.queries(x, *self._angles(at_B.unsqueeze(-1)))
        x = last.finish(x, _attended(q, k, v, attn_mask=is_prompt_B1P.unsqueeze(1)))
        cache = Cache([*keys, k.transpose(1, 2)], [*values, v.transpose(1, 2)])
        return PromptState(cache, lengths_B, self.norm(x.squeeze(1)))

    def start_samples(self, prompt: PromptState, samples: int, max_tokens: int) -> Cache:
        """An empty cache for ``samples`` continuations of each prompt, of ``max_tokens`` tokens each."""
        c = self.config
        shape = (len(prompt.lengths_B), samples, c.heads, max_tokens, c.head_width)
        return Cache([torch.empty(shape) for _ in self.blocks], [torch.empty(shape) for _ in self.blocks])

    def decode(self, windows_BGW: Tensor, at: int, prompt: PromptState, own: Cache) -> Tensor:
        """Hidden states [B, G, C] after feeding the ``at``-th own token of each sample; fills ``own`` at ``at``.

        Each sample looks at its prompt's keys, held once for the G of a group, and at its own: the two score blocks
        share one softmax.
        """
        width = prompt.cache.keys[0].shape[2]
        is_padding_B11P = (torch.arange(width) >= prompt.lengths_B[:, None])[:, None, None, :]
        cos, sin = self._angles((prompt.lengths_B + at)[:, None])
        x = self._embedded(windows_BGW)
        scale = self.config.head_width**-0.5
        for layer, block in enumerate(self.blocks):
            q, (k, v) = block.queries(x, cos, sin), block.keys_values(x, cos, sin)
            keys, values = own.keys[layer], own.values[layer]
            keys[:, :, :, at], values[:, :, :, at] = k, v
            q_BHGD = q.transpose(1, 2) * scale
            to_prompt = q_BHGD @ prompt.cache.keys[layer].transpose(-1, -2)
            to_own = (keys[:, :, :, : at + 1] @ (q * scale).unsqueeze(-1)).squeeze(-1).transpose(1, 2)
            scores = torch.cat((to_prompt.masked_fill(is_padding_B11P, float("-inf")), to_own), dim=-1)
            on_prompt, on_own = scores.softmax(dim=-1).split((width, at + 1), dim=-1)
            from_own = (on_own.transpose(1, 2).unsqueeze(-2) @ values[:, :, :, : at + 1]).squeeze(-2)
            attended = (on_prompt @ prompt.cache.values[layer]).transpose(1, 2) + from_own
            x = block.finish(x, attended)
        return self.norm(x)
