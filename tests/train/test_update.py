"""The account of a step: every sampled token is trained on or dropped for a named reason, and nothing else happens."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from palestra.algos import recipe
from palestra.errors import TrainError
from palestra.models.native import NativePolicy
from palestra.models.tiny import TinyConfig, TinyLM
from palestra.store import Store
from palestra.train.optim import Optimiser, OptimiserSettings
from palestra.train.run import Run
from palestra.train.settings import TrainSettings
from palestra.train.update import credit, update
from palestra.types import Completion, Group, Message, Score, Status, Task, Trajectory, Turn, Unscored

DAPO, GRPO = recipe("dapo"), recipe("grpo")


def group(name: str, rewards: list[float | None], tokens: int = 3, *, logprobs: bool = True) -> Group:
    task = Task(name, "toy", "train", 0, (Message("user", name),))
    made = []
    for index, reward in enumerate(rewards):
        ids = tuple(range(65, 65 + tokens + index))
        known = (-1.0,) * len(ids) if logprobs else None
        turn = Turn(tuple(name.encode()), Completion(ids, known, (0,) * len(ids), "stop"))
        score = Unscored("lost") if reward is None else Score(reward)
        status = Status.GRADER_ERROR if reward is None else Status.FINISHED
        made.append(Trajectory(f"{name}-{index}", task, index, (turn,), (), score, status))
    return Group(name, task, 0, tuple(made))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    torch.manual_seed(0)
    model = TinyLM(TinyConfig(channels=32, heads=4, hidden=48))
    settings = TrainSettings(method="rl", name="r", environments=(tmp_path,), out=tmp_path)
    store = Store.open(tmp_path / "s.db", create=True)
    return Run("r", settings, store, NativePolicy(model), Optimiser(model, OptimiserSettings(), steps=10))


def weights(run: Run) -> torch.Tensor:
    return torch.cat([weight.detach().flatten().clone() for weight in run.policy.model.parameters()])


def test_unscored_rollouts_leave_their_group_and_its_mean() -> None:
    made = credit(DAPO, [group("a", [1.0, None, 0.0])])
    # Two scored: mean 0.5, std (ddof 1) √0.5 = 0.70711; advantages ±0.5/0.70711.
    assert made.advantages == pytest.approx([0.70711, -0.70711], abs=1e-4)
    assert [len(turn.completion.ids) for turn in made.turns] == [3, 5]
    assert made.dropped_tokens == {"unscored": 4}


def test_groups_without_a_comparison_are_dropped_by_reason_or_kept() -> None:
    groups = [group("r", [1.0, 1.0]), group("w", [0.0, 0.0]), group("e", [0.5, 0.5]), group("m", [1.0, 0.0])]
    groups += [group("o", [1.0, None]), group("n", [None, None])]
    dapo = credit(DAPO, groups)
    assert dapo.dropped_groups == {"all_right": 1, "all_wrong": 1, "all_equal": 1, "alone": 1, "unscored": 1}
    assert len(dapo.turns) == 2
    kept = credit(GRPO, groups)
    assert kept.dropped_groups == {"unscored": 1}
    assert kept.advantages[:6] == [0.0] * 6


def test_the_account_balances(run: Run) -> None:
    groups = [group("a", [1.0, 0.0]), group("b", [1.0, 1.0]), group("c", [0.0, None, 1.0])]
    stats = update(run, DAPO, groups, reference=None)
    # Sampled 7 + 7 + 12 = 26; trained 7 + (3 + 5) = 15; dropped: 7 all right, 4 unscored.
    assert stats["trained"] == pytest.approx(15 / 26)
    assert stats["groups_kept"] == pytest.approx(2 / 3)
    assert stats["groups_all_right"] == pytest.approx(1 / 3)
    assert stats["grad_norm"] > 0


def test_no_signal_is_no_step(run: Run) -> None:
    before = weights(run)
    stats = update(run, DAPO, [group("a", [1.0, 1.0]), group("b", [0.0, 0.0])], reference=None)
    assert stats["trained"] == 0.0
    assert "loss" not in stats
    assert torch.equal(before, weights(run))


def test_micro_batches_do_not_change_the_step(run: Run, tmp_path: Path) -> None:
    groups = [group(name, [1.0, 0.0, 0.0, 1.0], tokens=at + 2) for at, name in enumerate("abcdef")]
    start = {name: tensor.clone() for name, tensor in run.policy.model.state_dict().items()}
    found = []
    for slots in (64, 100_000):
        run.policy.model.load_state_dict(start)
        cut = replace(run, settings=run.settings.model_copy(update={"slots_per_batch": slots}))
        cut.optimiser = Optimiser(run.policy.model, OptimiserSettings(), steps=10)
        found.append((update(cut, DAPO, groups, reference=None), weights(run)))
    (small, few), (whole, one) = found
    assert small == pytest.approx(whole, rel=1e-4, abs=1e-6)
    assert torch.allclose(few, one, atol=1e-6)


def test_kl_to_a_reference_is_zero_at_the_reference_and_grows(run: Run) -> None:
    groups = [group("a", [1.0, 0.0])]
    same = update(run, DAPO, groups, reference=run.policy.model)
    assert same["kl_k1"] == pytest.approx(0.0, abs=1e-6)
    other = TinyLM(run.policy.model.config)
    other.reset(9)
    assert update(run, DAPO, groups, reference=other)["kl_k3"] > 0


def test_text_only_rollouts_are_refused_with_the_reason() -> None:
    with pytest.raises(TrainError, match="no log-probabilities"):
        credit(DAPO, [group("a", [1.0, 0.0], logprobs=False)])


def test_a_gradient_that_is_not_finite_stops_before_the_step(run: Run) -> None:
    before = weights(run)
    next(run.policy.model.parameters()).grad = torch.full_like(next(run.policy.model.parameters()), float("nan"))
    with pytest.raises(TrainError, match="gradient norm is nan"):
        run.optimiser.step(3)
    assert torch.equal(before, weights(run))


def test_the_rate_rises_then_falls() -> None:
    model = TinyLM(TinyConfig(channels=32, heads=4, hidden=48))
    optimiser = Optimiser(model, OptimiserSettings(warmup=4, final=0.5), steps=10)
    # Rise (step + 1)/4 up to 1, times 1 − 0.5·step/10.
    assert [optimiser.factor(step) for step in (0, 1, 3, 9)] == pytest.approx([0.25, 0.475, 0.85, 0.55])


def test_muon_steps_the_blocks_and_adamw_the_rest() -> None:
    model = TinyLM(TinyConfig(channels=32, heads=4, hidden=48))
    optimiser = Optimiser(model, OptimiserSettings(kind="muon"), steps=10)
    sizes = [sum(p.numel() for p in part.param_groups[0]["params"]) for part in optimiser.parts]
    blocks = sum(p.numel() for name, p in model.named_parameters() if name.startswith("blocks.") and p.dim() == 2)
    assert sizes == [sum(p.numel() for p in model.parameters()) - blocks, blocks]
