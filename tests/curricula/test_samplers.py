from __future__ import annotations

from collections import Counter

import pytest

from palestra.curricula.samplers import UniformSampler
from palestra.errors import ConfigError
from tests.toy import EchoEnvironment

ENVS = [EchoEnvironment("toy.a"), EchoEnvironment("toy.b"), EchoEnvironment("toy.c")]


def test_every_environment_once_a_round_in_changing_order() -> None:
    drawn = [task.env for task in UniformSampler(ENVS, split="train", seed=0).draw(30)]
    rounds = [tuple(drawn[at : at + 3]) for at in range(0, 30, 3)]
    assert all(len(set(each)) == 3 for each in rounds)
    assert len(set(rounds)) > 2


def test_a_restored_sampler_goes_on_exactly() -> None:
    first = UniformSampler(ENVS, split="train", seed=4)
    first.draw(17)
    state = first.state_dict()
    second = UniformSampler(ENVS, split="train", seed=4)
    second.load_state_dict(state)
    assert second.draw(20) == first.draw(20)
    assert UniformSampler(ENVS, split="train", seed=5).draw(20) != UniformSampler(ENVS, split="train", seed=4).draw(20)


def test_one_draw_is_many_draws() -> None:
    one, many = UniformSampler(ENVS, split="train", seed=1), UniformSampler(ENVS, split="train", seed=1)
    assert one.draw(12) == [task for _ in range(4) for task in many.draw(3)]
    assert set(Counter(task.env for task in one.draw(12)).values()) == {4}


def test_nothing_to_draw_from_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no environment"):
        UniformSampler([], split="train", seed=0)
    with pytest.raises(ConfigError, match="ran out"):
        UniformSampler(ENVS[:1], split="heldout", seed=0).draw(11)
