from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from palestra.errors import ModelError
from palestra.models.load import ABOUT, WEIGHTS, load_model, load_policy, save_model
from palestra.models.tiny import TinyConfig, TinyLM


def test_a_saved_model_comes_back_bit_for_bit(tmp_path: Path) -> None:
    net = TinyLM(TinyConfig(channels=32, hidden=48))
    net.reset(5)
    save_model(net, 12, tmp_path)
    back, version = load_model(tmp_path)
    assert version == 12
    assert back.config == net.config
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), back.state_dict().values(), strict=True))


def test_a_seed_fixes_new_weights() -> None:
    first, same, other = (TinyLM(TinyConfig(channels=32, hidden=48)) for _ in range(3))
    for net, seed in ((first, 1), (same, 1), (other, 2)):
        net.reset(seed)
    assert torch.equal(first.blocks[0].kv.weight, same.blocks[0].kv.weight)
    assert not torch.equal(first.blocks[0].kv.weight, other.blocks[0].kv.weight)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("nativ:tiny", "did you mean native:tiny"),
        ("native", "kind:what"),
        ("scripted:golden", "did you mean gold"),
        ("native:/nowhere", "no model here"),
    ],
)
def test_unknown_models_are_named_with_the_way_out(spec: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        load_policy(spec)


def test_damaged_model_folders_are_one_sentence(tmp_path: Path) -> None:
    net = TinyLM(TinyConfig(channels=32, hidden=48))
    save_model(net, 0, tmp_path)
    (tmp_path / WEIGHTS).write_bytes(b"junk")
    with pytest.raises(ModelError, match="loading the model"):
        load_model(tmp_path)
    (tmp_path / ABOUT).write_text(json.dumps({"architecture": "huge", "config": {}, "version": 0}))
    with pytest.raises(ModelError, match="architecture 'huge' is unknown"):
        load_model(tmp_path)
