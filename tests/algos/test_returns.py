"""Returns: hand cases, sums by definition, and what an observation in between, or an end, does."""

from __future__ import annotations

import pytest
import torch

from palestra.algos.returns import bootstrap, discounted, gae, spans, spread, vtrace
from palestra.errors import TrainError
from tests.algos.batches import GARBAGE, rows
from tests.reference import slow_returns as slow


def columns(seed: int, count: int, rows_: int = 5, tokens: int = 8) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A ragged mask, and ``count`` columns of numbers with garbage under it; row 1 is masked whole."""
    draw = torch.Generator().manual_seed(seed)
    mask_BT = torch.rand(rows_, tokens, generator=draw) < 0.6
    mask_BT[1] = False
    garbage_BT = GARBAGE.double()[torch.randint(4, (rows_, tokens), generator=draw)]
    made = [torch.randn(rows_, tokens, generator=draw, dtype=torch.float64) for _ in range(count)]
    return mask_BT, [torch.where(mask_BT, column, garbage_BT) for column in made]


def test_discounted_by_hand():
    nan = float("nan")
    rewards = torch.tensor([[1.0, nan, 0.0, 2.0, nan]])
    mask = torch.tensor([[True, False, True, True, False]])
    # over the gap: 2;  0 + ½·2 = 1;  1 + ½·1 = 1.5
    assert discounted(rewards, mask, discount=0.5).tolist() == [[1.5, 0.0, 1.0, 2.0, 0.0]]
    # Monte Carlo by default: 2, 2, 3
    assert discounted(rewards, mask).tolist() == [[3.0, 0.0, 2.0, 2.0, 0.0]]
    # truncated with 4 to come: 2 + ½·4 = 4;  0 + ½·4 = 2;  1 + ½·2 = 2
    assert discounted(rewards, mask, discount=0.5, bootstrap_B=torch.tensor([4.0])).tolist() == [[2.0, 0, 2.0, 4.0, 0]]


def test_gae_by_hand():
    nan = float("nan")
    rewards = torch.tensor([[0.0, nan, 1.0]])
    values = torch.tensor([[0.5, 9.0, 0.25]])
    mask = torch.tensor([[True, False, True]])
    advantages, returns = gae(rewards, values, mask, discount=0.5, decay=0.5)
    # last: 1 + 0 − 0.25 = 0.75; first: δ = 0 + ½·0.25 − 0.5 = −0.375, + ½·½·0.75 = −0.1875
    assert advantages.tolist() == [[-0.1875, 0.0, 0.75]]
    assert returns.tolist() == [[0.3125, 0.0, 1.0]]
    # truncated with value 2: last 1 + ½·2 − 0.25 = 1.75; first −0.375 + ¼·1.75 = 0.0625
    cut, _ = gae(rewards, values, mask, discount=0.5, decay=0.5, bootstrap_B=torch.tensor([2.0]))
    assert cut.tolist() == [[0.0625, 0.0, 1.75]]
    # the defaults: γ = 1, λ = 0.95: first 0.25 − 0.5 + 0.95·0.75
    assert gae(rewards, values, mask)[0][0, 0].item() == pytest.approx(0.4625)


def test_vtrace_by_hand():
    rewards, values = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.5]])
    log_ratios, mask = torch.tensor([[4.0, 0.5]]).log(), torch.ones(1, 2, dtype=torch.bool)
    advantages, targets = vtrace(rewards, values, log_ratios, mask, discount=0.5)
    # last: ρ ½: A = ½·(1 − ½) = ¼, v = ½ + ¼ = ¾
    # first: ρ = min(1, 4) = 1: A = 0 + ½·¾ − ½ = −⅛; v = ½ + (½·½ − ½) + ½·(¾ − ½) = ⅜
    assert advantages.tolist() == [[-0.125, 0.25]]
    assert targets.tolist() == [[0.375, 0.75]]
    # cap 2: A = 2·(−⅛); v = ½ + 2·(−¼) + ½·2·¼ = ¼
    advantages, targets = vtrace(rewards, values, log_ratios, mask, discount=0.5, cap=2.0)
    assert (advantages[0, 0].item(), targets[0, 0].item()) == (-0.25, 0.25)


@pytest.mark.parametrize("seed", range(10))
def test_equal_sums_by_definition(seed):
    mask, (rewards, values, log_ratios) = columns(seed, 3)
    after = torch.linspace(-1, 1, 5, dtype=torch.float64)
    r, v, d = (rows(x, mask) for x in (rewards, values, log_ratios))
    got = discounted(rewards, mask, discount=0.9, bootstrap_B=after).tolist()
    assert got == [pytest.approx(slow.discounted(r[b], 0.9, after[b].item())) for b in range(5)]
    got, returns = gae(rewards, values, mask, discount=0.9, decay=0.8, bootstrap_B=after)
    want = [slow.gae(r[b], v[b], 0.9, 0.8, after[b].item()) for b in range(5)]
    assert got.tolist() == [pytest.approx(row) for row in want]
    torch.testing.assert_close(returns, torch.where(mask, got + values, 0.0))
    a, target = vtrace(rewards, values, log_ratios, mask, discount=0.9, decay=0.7, cap=1.5, bootstrap_B=after)
    for b in range(5):
        expected = slow.vtrace(r[b], v[b], d[b], 0.9, 0.7, 1.5, after[b].item())
        assert (a[b].tolist(), target[b].tolist()) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_laws():
    mask, (rewards, values) = columns(3, 2)
    # λ = 1: the Monte-Carlo return minus the value; on policy, V-trace's targets are the λ-returns
    advantages, returns = gae(rewards, values, mask, discount=0.9, decay=1.0)
    torch.testing.assert_close(returns, discounted(rewards, mask, discount=0.9))
    torch.testing.assert_close(torch.where(mask, advantages + values, 0.0), returns)
    _, returns = gae(rewards, values, mask, discount=0.9, decay=0.6)
    _, targets = vtrace(rewards, values, torch.zeros_like(rewards), mask, discount=0.9, decay=0.6)
    torch.testing.assert_close(targets, returns)
    # one policy call with an observation after it is one without
    wide = torch.nn.functional.pad(rewards, (2, 3), value=float("nan"))
    wide_mask = torch.nn.functional.pad(mask, (2, 3))
    torch.testing.assert_close(discounted(wide, wide_mask)[:, 2:-3], discounted(rewards, mask))


def test_an_episode_ends_in_exactly_one_way():
    value, yes, no = torch.tensor([3.0, 4.0]), torch.tensor([True, True]), torch.tensor([False, False])
    assert bootstrap(value, yes, no).tolist() == [0.0, 0.0]
    assert bootstrap(value, no, yes).tolist() == [3.0, 4.0]
    with pytest.raises(TrainError, match="episode 1 is both"):
        bootstrap(value, torch.tensor([False, True]), yes)
    with pytest.raises(TrainError, match="episode 0 is neither"):
        bootstrap(value, torch.tensor([False, True]), no)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_number_that_is_not_finite_is_named(bad):
    mask, given = columns(4, 3)
    row, column = mask.nonzero()[3].tolist()
    given[bad][row, column] = float("inf")
    name = ("reward", "value", "log ratio")[bad]
    with pytest.raises(TrainError, match=f"{name} of sequence {row}, token {column} is inf"):
        vtrace(*given, mask)
    if bad < 2:
        with pytest.raises(TrainError, match=name):
            gae(*given[:2], mask)
    if bad < 1:
        with pytest.raises(TrainError, match=name):
            discounted(given[0], mask)


def test_spans_are_turns():
    mask = torch.tensor([[True, True, False, True, False], [False, True, False, False, True], [False] * 5])
    numbers = spans(mask)
    assert numbers.tolist() == [[0, 0, -1, 1, -1], [-1, 0, -1, -1, 1], [-1] * 5]
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert spread(values, numbers).tolist() == [[1, 1, 0, 2, 0], [0, 3, 0, 0, 4], [0] * 5]
    with pytest.raises(TrainError, match="has 2 turns, but only 1"):
        spread(values[:, :1], numbers)


def test_per_turn_gae_reaches_every_token_of_the_turn():
    """Two turns with values ½ and ¼, outcome 1: γ = λ = 1: 1 − ½ on the first turn's tokens, 1 − ¼ on the second's."""
    mask = torch.tensor([[True, True, False, True]])
    turns = torch.ones(1, 2, dtype=torch.bool)
    advantages, _ = gae(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.5, 0.25]]), turns, decay=1.0)
    assert spread(advantages, spans(mask)).tolist() == [[0.5, 0.5, 0.0, 0.75]]
