"""Groups to tensors: rollouts that share a prompt share its computation, forward and backward.

A packed row holds one prompt and all its completions, one after the other. A completion sees the prompt and itself,
never a sibling, and its positions continue the prompt's: each token's hidden state is the one that it would have
alone. Rows of similar length are put together, so little is padding. Axes: R packed rows, S slots of a row, W window,
B sampled sequences (one for each turn of each rollout), T sampled tokens, Q sampled tokens of all a row's sequences.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from palestra.types import Turn

PAD = -1
"""Segment of a slot that holds nothing."""


@dataclass(frozen=True)
class Packed:
    """Some rows ready for the model.

    windows_RSW            each slot's token id, last, after the W − 1 ids before it in its own sequence
    positions_RS           rotary positions
    segments_RS            0 prompt, i >= 1 the row's i-th completion, PAD nothing
    asked_RQ               slots whose hidden states predict a row's sampled tokens, one for each token; then padding
    sources_BT             which of these, flat (row·Q + q), predicts sampled token [b, t]
    targets_BT             the sampled tokens
    is_sampled_BT          which [b, t] exist
    sequences_B            which of the caller's sequences each b is
    """

    windows_RSW: Tensor
    positions_RS: Tensor
    segments_RS: Tensor
    asked_RQ: Tensor
    sources_BT: Tensor
    targets_BT: Tensor
    is_sampled_BT: Tensor
    sequences_B: Tensor

    def is_visible(self) -> Tensor:
        """Attention mask [R, S, S]: earlier or same slot, of the prompt or of one's own completion.

        Padding sees itself alone, as a row of a softmax may not be empty.
        """
        seg = self.segments_RS
        slots = seg.shape[1]
        is_causal = torch.ones(slots, slots, dtype=torch.bool).tril()
        is_kin = (seg[:, None, :] == seg[:, :, None]) | (seg[:, None, :] == 0)
        visible: Tensor = (is_causal & is_kin) | torch.eye(slots, dtype=torch.bool)
        return visible


def pack(turns: Sequence[Turn], *, slots_per_batch: int, window: int, padding: int) -> list[Packed]:
    """Pack sampled sequences into batches of at most ``slots_per_batch`` slots, padding included (one row at least)."""
    by_prompt: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for at, turn in enumerate(turns):
        by_prompt[turn.prompt_ids].append(at)

    def length(row: tuple[tuple[int, ...], list[int]]) -> int:
        return len(row[0]) + sum(len(turns[at].completion.ids) for at in row[1])

    rows = sorted(by_prompt.items(), key=length, reverse=True)
    batches: list[Packed] = []
    while rows:
        count = max(1, slots_per_batch // length(rows[0]))
        batches.append(_pack_rows(rows[:count], turns, length(rows[0]), window, padding))
        rows = rows[count:]
    return batches


def _pack_rows(
    rows: Sequence[tuple[tuple[int, ...], list[int]]], turns: Sequence[Turn], slots: int, window: int, padding: int
) -> Packed:
    sequences = [at for _, members in rows for at in members]
    longest = max(len(turns[at].completion.ids) for at in sequences)
    most = max(sum(len(turns[at].completion.ids) for at in members) for _, members in rows)
    windows = torch.full((len(rows), slots, window), padding)
    positions = torch.zeros(len(rows), slots, dtype=torch.long)
    segments = torch.full((len(rows), slots), PAD)
    asked = torch.zeros(len(rows), most, dtype=torch.long)
    sources = torch.zeros(len(sequences), longest, dtype=torch.long)
    targets = torch.zeros(len(sequences), longest, dtype=torch.long)
    is_sampled = torch.zeros(len(sequences), longest, dtype=torch.bool)
    b = 0
    for row, (prompt, members) in enumerate(rows):
        width = len(prompt)
        before = torch.tensor((padding,) * (window - 1) + prompt)
        windows[row, :width] = before.unfold(0, window, 1)
        positions[row, :width] = torch.arange(width)
        segments[row, :width] = 0
        slot, q = width, 0
        for segment, at in enumerate(members, start=1):
            sampled = torch.tensor(turns[at].completion.ids)
            count = len(sampled)
            targets[b, :count] = sampled
            windows[row, slot : slot + count] = torch.cat((before, sampled))[width:].unfold(0, window, 1)
            positions[row, slot : slot + count] = torch.arange(width, width + count)
            segments[row, slot : slot + count] = segment
            # Token 0 is predicted by the prompt's last slot, token t by the slot of token t − 1.
            asked[row, q] = width - 1
            asked[row, q + 1 : q + count] = torch.arange(slot, slot + count - 1)
            sources[b, :count] = row * most + torch.arange(q, q + count)
            is_sampled[b, :count] = True
            slot, q, b = slot + count, q + count, b + 1
    return Packed(windows, positions, segments, asked, sources, targets, is_sampled, torch.tensor(sequences))
