"""The engine's samples are exact: cache or not, whatever shares the batch, and as the trainer will see them."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
import torch
from torch import Tensor

from palestra.errors import ModelError
from palestra.models.native import NativePolicy, uniforms
from palestra.models.render import END, ByteRenderer
from palestra.models.tiny import TinyConfig, TinyLM
from palestra.train.batch import pack
from palestra.train.logprobs import sampled_logprobs
from palestra.types import Completion, Message, SamplingParams, Turn

RENDER = ByteRenderer()


def model(seed: int = 0, scale: float = 6.0) -> TinyLM:
    """A small model whose distributions are far from flat, so that an error shows."""
    made = TinyLM(TinyConfig(layers=2, channels=32, heads=4, hidden=48))
    made.reset(seed)
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() == 2:
                weight.mul_(scale)
    return made


def prompts(n: int) -> list[tuple[int, ...]]:
    return [RENDER.prompt([Message("user", "x" * (1 + 7 * i % 23) + str(i))]) for i in range(n)]


def plain_logits(net: TinyLM, ids: tuple[int, ...]) -> Tensor:
    """Next-token logits after ``ids``, without cache, packing or padding."""
    window = net.windows(torch.tensor([ids]))
    is_visible = torch.ones(1, len(ids), len(ids), dtype=torch.bool).tril()
    return net.logits(net(window, torch.arange(len(ids))[None], is_visible))[0, -1]


def test_greedy_with_cache_is_greedy_without() -> None:
    net = model()
    asked = [(prompt, 1, SamplingParams(0.0, 12)) for prompt in prompts(5)]
    for (prompt, _, _), [made] in zip(asked, NativePolicy(net).generate(asked), strict=True):
        ids = prompt
        for token in made.ids:
            with torch.no_grad():
                assert int(plain_logits(net, ids).argmax()) == token
            ids += (token,)


def test_sampler_and_trainer_agree_on_every_logprob() -> None:
    net = model()
    asked = [(prompt, 4, SamplingParams(0.7, 16, seed=9 * i)) for i, prompt in enumerate(prompts(6))]
    turns = [
        Turn(prompt, completion)
        for (prompt, _, _), made in zip(asked, NativePolicy(net).generate(asked), strict=True)
        for completion in made
    ]
    seen = 0
    for packed in pack(turns, slots_per_batch=200, window=3, padding=261):
        logprobs_BT, _ = sampled_logprobs(net, packed, temperature=0.7)
        for row, at in enumerate(packed.sequences_B.tolist()):
            reported = torch.tensor(turns[at].completion.logprobs)
            assert torch.allclose(logprobs_BT[row, : len(reported)], reported, atol=1e-4, rtol=0)
            seen += len(reported)
    assert seen == sum(len(turn.completion.ids) for turn in turns) > 100


def test_what_shares_a_batch_changes_no_sample() -> None:
    net = model()
    many = [(prompt, 1, SamplingParams(1.0, 10, seed=100 + i)) for i, prompt in enumerate(prompts(7))]
    together = NativePolicy(net).generate(many)
    alone = [NativePolicy(net).generate([one])[0] for one in many]
    assert [[c.ids for c in made] for made in together] == [[c.ids for c in made] for made in alone]


def test_a_prompt_is_read_once_for_its_whole_group() -> None:
    policy = NativePolicy(model())
    prompt = prompts(1)[0]

    async def eight_rollouts() -> list[list[Completion]]:
        return await asyncio.gather(*(policy.sample(prompt, 1, SamplingParams(1.0, 4, seed=s)) for s in range(8)))

    made = asyncio.run(eight_rollouts())
    assert policy.stats.prompt_tokens == len(prompt)
    assert policy.stats.shared_prompt_tokens == 7 * len(prompt)
    assert len({completion.ids for [completion] in made}) > 1, "eight streams, not one"


def test_samples_follow_the_model_s_distribution() -> None:
    """χ² of 20,000 first tokens against the exact probabilities; fails by chance once in 10,000."""
    net = model(scale=4.0)
    prompt = prompts(1)[0]
    n = 20_000
    made = NativePolicy(net).generate([(prompt, 1, SamplingParams(1.0, 1, seed=977 * i)) for i in range(n)])
    with torch.no_grad():
        probabilities = plain_logits(net, prompt).softmax(-1).double().numpy()
    drawn = np.bincount([completion[0].ids[0] for completion in made], minlength=len(probabilities))
    is_common = probabilities * n >= 5
    expected = np.append(probabilities[is_common], probabilities[~is_common].sum()) * n
    observed = np.append(drawn[is_common], drawn[~is_common].sum())
    chi2 = ((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    degrees = len(expected) - 1
    # Wilson–Hilferty: (χ²/k)^(1/3) is normal; 3.719 is the 0.9999 quantile.
    limit = degrees * (1 - 2 / (9 * degrees) + 3.719 * (2 / (9 * degrees)) ** 0.5) ** 3
    assert degrees > 20
    assert chi2 < limit


def test_streams_are_uniform_and_independent_of_each_other() -> None:
    seeds = np.arange(200, dtype=np.uint64)
    drawn = np.stack([uniforms(seeds, at) for at in range(200)])
    assert ((drawn >= 0) & (drawn < 1)).all()
    # 40,000 draws: the mean's standard error is 0.0014, a correlation's 0.005; limits at 5 of them.
    assert abs(drawn.mean() - 0.5) < 0.0072
    assert abs(np.corrcoef(drawn[:, :-1].ravel(), drawn[:, 1:].ravel())[0, 1]) < 0.025
    assert abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 0.025


def test_finish_reasons_and_versions() -> None:
    policy = NativePolicy(model(), version=7)
    made = [c for [c] in policy.generate([(p, 1, SamplingParams(1.0, 30, seed=i)) for i, p in enumerate(prompts(60))])]
    assert {c.finish_reason for c in made} == {"stop", "length"}
    for completion in made:
        assert (completion.ids[-1] == END) == (completion.finish_reason == "stop")
        assert len(completion.ids) == 30 or completion.finish_reason == "stop"
        assert END not in completion.ids[:-1]
        assert completion.versions == (7,) * len(completion.ids)


@pytest.mark.parametrize(
    ("prompt", "n", "tokens", "says"),
    [
        ((), 1, 4, "needs a prompt"),
        ((1,), 0, 4, "n >= 1"),
        ((1,), 1, 0, "max_tokens >= 1"),
        ((1,) * 60, 1, 5, "context"),
    ],
)
def test_impossible_requests_are_refused(prompt: tuple[int, ...], n: int, tokens: int, says: str) -> None:
    policy = NativePolicy(model(), context_tokens=64)
    with pytest.raises(ModelError, match=says):
        asyncio.run(policy.sample(prompt, n, SamplingParams(1.0, tokens)))


def test_damaged_weights_are_an_error_for_every_waiting_request() -> None:
    net = model()
    with torch.no_grad():
        net.norm.weight.fill_(float("nan"))
    policy = NativePolicy(net)

    async def two() -> list[object]:
        asked = (policy.sample(prompt, 1, SamplingParams(1.0, 4)) for prompt in prompts(2))
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(two())
    assert len(answers) == 2
    for answer in answers:
        assert isinstance(answer, ModelError)
        assert "no finite distribution" in str(answer)
