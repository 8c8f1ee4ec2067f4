"""Packing shares a prompt's computation and changes no number: not a log-probability, not a gradient."""

from __future__ import annotations

from random import Random

import pytest
import torch
from torch import Tensor

from palestra.models.tiny import TinyConfig, TinyLM
from palestra.train.batch import PAD, pack
from palestra.train.logprobs import sampled_logprobs
from palestra.types import Completion, Turn


def net() -> TinyLM:
    made = TinyLM(TinyConfig(layers=2, channels=32, heads=4, hidden=48))
    made.reset(3)
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(4.0 if weight.dim() == 2 else 1.0)
    return made


def turns(seed: int, groups: int = 5) -> list[Turn]:
    rng = Random(seed)

    def ids(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randrange(256) for _ in range(rng.randint(low, high)))

    made = []
    for _ in range(groups):
        prompt = ids(1, 12)
        for _ in range(rng.randint(1, 4)):
            sampled = ids(1, 9)
            made.append(Turn(prompt, Completion(sampled, None, (0,) * len(sampled), "stop")))
    rng.shuffle(made)
    return made


def plain_logprobs(model: TinyLM, turn: Turn) -> Tensor:
    """Each sampled token's log-probability, the sequence run alone from end to end."""
    ids = turn.prompt_ids + turn.completion.ids
    is_visible = torch.ones(1, len(ids), len(ids), dtype=torch.bool).tril()
    hidden = model(model.windows(torch.tensor([ids])), torch.arange(len(ids))[None], is_visible)
    log_all = model.logits(hidden)[0].log_softmax(-1)
    first = len(turn.prompt_ids)
    return torch.stack([log_all[at - 1, ids[at]] for at in range(first, len(ids))])


@pytest.mark.parametrize("slots", [1, 60, 400, 10_000])
def test_packed_numbers_are_those_of_sequences_alone(slots: int) -> None:
    model, made = net(), turns(0)
    seen = []
    for packed in pack(made, slots_per_batch=slots, window=3, padding=261):
        logprobs_BT, entropy_BT = sampled_logprobs(model, packed)
        assert (entropy_BT[packed.is_sampled_BT] > 0).all()
        assert (logprobs_BT[~packed.is_sampled_BT] == 0).all()
        for row, at in enumerate(packed.sequences_B.tolist()):
            alone = plain_logprobs(model, made[at])
            assert torch.allclose(logprobs_BT[row, : len(alone)], alone, atol=1e-5, rtol=0)
            assert int(packed.is_sampled_BT[row].sum()) == len(alone)
            seen.append(at)
    assert sorted(seen) == list(range(len(made)))


def test_gradients_are_those_of_sequences_alone() -> None:
    model, made = net(), turns(1)
    weights = [0.3 + 0.1 * at for at in range(len(made))]
    for packed in pack(made, slots_per_batch=150, window=3, padding=261):
        logprobs_BT, _ = sampled_logprobs(model, packed)
        (logprobs_BT.sum(-1) * torch.tensor([weights[at] for at in packed.sequences_B.tolist()])).sum().backward()
    shared = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    for turn, weight in zip(made, weights, strict=True):
        (plain_logprobs(model, turn).sum() * weight).backward()
    for name, weight in model.named_parameters():
        scale = weight.grad.abs().max().clamp_min(1.0)
        assert torch.allclose(shared[name] / scale, weight.grad / scale, atol=1e-5), name


def test_a_completion_sees_its_prompt_and_itself_alone() -> None:
    shared = (5, 6)
    made = [Turn(shared, Completion((7, 8), None, (0, 0), "stop")), Turn(shared, Completion((9,), None, (0,), "stop"))]
    [packed] = pack(made, slots_per_batch=100, window=2, padding=0)
    assert packed.segments_RS.tolist() == [[0, 0, 1, 1, 2]]
    assert packed.positions_RS.tolist() == [[0, 1, 2, 3, 2]]
    assert packed.windows_RSW.tolist() == [[[0, 5], [5, 6], [6, 7], [7, 8], [6, 9]]]
    assert packed.is_visible()[0].int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ]
    assert packed.asked_RQ.tolist() == [[1, 2, 1]]
    assert packed.sources_BT.tolist() == [[0, 1], [2, 0]]


def test_prompts_are_shared_and_little_is_padding() -> None:
    made = [
        Turn((n,) * 40, Completion((n, i), None, (0, 0), "stop")) for n in range(16) for i in range(8)
    ]  # 16 prompts of 40, 8 completions of 2 each: 16·(40 + 16) slots shared, 128·42 otherwise
    batches = pack(made, slots_per_batch=300, window=3, padding=261)
    assert sum(packed.segments_RS.numel() for packed in batches) == 16 * 56
    assert all(packed.segments_RS.numel() <= 300 for packed in batches)
    assert not any((packed.segments_RS == PAD).any() for packed in batches)


def test_rows_with_fewer_sampled_tokens_are_padded_by_slots_that_nobody_reads() -> None:
    made = [
        Turn((5, 6), Completion((7, 8, 9), None, (0, 0, 0), "stop")),
        Turn((4,), Completion((3,), None, (0,), "stop")),
    ]
    [packed] = pack(made, slots_per_batch=100, window=1, padding=0)
    assert packed.asked_RQ.tolist() == [[1, 2, 3], [0, 0, 0]]
    assert packed.sources_BT[packed.is_sampled_BT].tolist() == [0, 1, 2, 3]
