"""Returns and advantages over time: a column is a token, or a turn; the recursions are the same.

rewards_BT, values_BT are read only where ``is_trained_BT``; what lies between (tool output, padding) is stepped over,
so that a return crosses an observation undiminished and whatever stands under the mask changes nothing. A reward
belongs on a trained position: an outcome goes on the last one.

How an episode ended matters only after its last trained position. terminated: nothing follows. truncated: it would have
gone on, and ``bootstrap_B`` stands for what was cut off, the value of the state after the last action; 0 where the
episode terminated (``bootstrap``). The two are never merged into one "done".
"""

from __future__ import annotations

import torch
from torch import Tensor

from palestra.algos.numbers import check_finite
from palestra.errors import TrainError


def bootstrap(last_values_B: Tensor, is_terminated_B: Tensor, is_truncated_B: Tensor) -> Tensor:
    """V(state after the last action) where an episode was cut off, 0 where it terminated, [B].

    TrainError for an episode that is both, or neither: an unfinished one has no return yet."""
    is_unclear_B = is_terminated_B == is_truncated_B
    if bool(is_unclear_B.any()):
        at = int(is_unclear_B.nonzero()[0])
        both = bool(is_terminated_B[at])
        raise TrainError(
            f"episode {at} is {'both terminated and truncated' if both else 'neither terminated nor truncated'}; "
            "it must be exactly one of them"
        )
    return torch.where(is_truncated_B, last_values_B, torch.zeros_like(last_values_B))


def discounted(
    rewards_BT: Tensor, is_trained_BT: Tensor, *, discount: float = 1.0, bootstrap_B: Tensor | None = None
) -> Tensor:
    """G_t = r_t + γ·G_{t+1}, with t + 1 the next trained position, and G = ``bootstrap_B`` after the last; [B, T].

    discount 1 gives Monte-Carlo returns. Zero where nothing is trained."""
    check_finite("reward", rewards_BT, is_trained_BT)
    follow_B = rewards_BT.new_zeros(len(rewards_BT)) if bootstrap_B is None else bootstrap_B
    made_BT = torch.zeros_like(rewards_BT)
    for t in reversed(range(rewards_BT.shape[1])):
        is_here_B = is_trained_BT[:, t]
        follow_B = torch.where(is_here_B, rewards_BT[:, t] + discount * follow_B, follow_B)
        made_BT[:, t] = torch.where(is_here_B, follow_B, 0.0)
    return made_BT


def gae(
    rewards_BT: Tensor,
    values_BT: Tensor,
    is_trained_BT: Tensor,
    *,
    discount: float = 1.0,
    decay: float = 0.95,
    bootstrap_B: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A_t = δ_t + γλ·A_{t+1}, δ_t = r_t + γ·V_{t+1} − V_t (arXiv:1506.02438); returns (A_BT, A_BT + V_BT).

    decay  λ: 1 is the Monte-Carlo return minus the value, 0 the one-step error. t + 1 is the next trained position;
    V after the last is ``bootstrap_B``. Over turns: columns are turns, then ``spread``. Zero where nothing is trained.
    """
    check_finite("reward", rewards_BT, is_trained_BT)
    check_finite("value", values_BT, is_trained_BT)
    zeros_B = rewards_BT.new_zeros(len(rewards_BT))
    value_B, advantage_B = (zeros_B if bootstrap_B is None else bootstrap_B), zeros_B
    made_BT = torch.zeros_like(rewards_BT)
    for t in reversed(range(rewards_BT.shape[1])):
        is_here_B = is_trained_BT[:, t]
        delta_B = rewards_BT[:, t] + discount * value_B - values_BT[:, t]
        advantage_B = torch.where(is_here_B, delta_B + discount * decay * advantage_B, advantage_B)
        value_B = torch.where(is_here_B, values_BT[:, t], value_B)
        made_BT[:, t] = torch.where(is_here_B, advantage_B, 0.0)
    return made_BT, torch.where(is_trained_BT, made_BT + values_BT, 0.0)


def vtrace(
    rewards_BT: Tensor,
    values_BT: Tensor,
    log_ratios_BT: Tensor,
    is_trained_BT: Tensor,
    *,
    discount: float = 1.0,
    decay: float = 1.0,
    cap: float = 1.0,
    bootstrap_B: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """V-trace (arXiv:1802.01561): off-policy values; returns (policy-gradient advantages, value targets), [B, T].

        v_t = V_t + ρ_t·(r_t + γ·V_{t+1} − V_t) + γ·λ·c_t·(v_{t+1} − V_{t+1}),   A_t = ρ_t·(r_t + γ·v_{t+1} − V_t)

    with ρ = c = min(cap, exp(log ratio)), detached. On policy, with cap >= 1, v is the λ-return. A_t carries ρ_t
    already: use it with a surrogate that adds no ratio of its own (``Cispo(0, 0)``)."""
    check_finite("reward", rewards_BT, is_trained_BT)
    check_finite("value", values_BT, is_trained_BT)
    check_finite("log ratio", log_ratios_BT, is_trained_BT)
    weights_BT = log_ratios_BT.detach().exp().clamp_max(cap)
    zeros_B = rewards_BT.new_zeros(len(rewards_BT))
    value_B = target_B = zeros_B if bootstrap_B is None else bootstrap_B
    advantages_BT, targets_BT = torch.zeros_like(rewards_BT), torch.zeros_like(rewards_BT)
    for t in reversed(range(rewards_BT.shape[1])):
        is_here_B, now_B, weight_B = is_trained_BT[:, t], values_BT[:, t], weights_BT[:, t]
        advantage_B = weight_B * (rewards_BT[:, t] + discount * target_B - now_B)
        delta_B = weight_B * (rewards_BT[:, t] + discount * value_B - now_B)
        made_B = now_B + delta_B + discount * decay * weight_B * (target_B - value_B)
        target_B, value_B = torch.where(is_here_B, made_B, target_B), torch.where(is_here_B, now_B, value_B)
        advantages_BT[:, t] = torch.where(is_here_B, advantage_B, 0.0)
        targets_BT[:, t] = torch.where(is_here_B, target_B, 0.0)
    return advantages_BT, targets_BT


def spans(is_trained_BT: Tensor) -> Tensor:
    """Which run of trained tokens (one turn of a rollout) each token belongs to: 0, 1, … along each row, [B, T] long;
    −1 where nothing is trained. Turns are what lies between observations, so two with none between are one."""
    before_BT = torch.nn.functional.pad(is_trained_BT, (1, 0))[:, :-1]
    numbers_BT = (is_trained_BT & ~before_BT).cumsum(-1) - 1
    return torch.where(is_trained_BT, numbers_BT, -1)


def spread(values_BK: Tensor, spans_BT: Tensor) -> Tensor:
    """Each turn's value on each of its tokens, 0 where the span is −1, [B, T]. TrainError for a span beyond K."""
    if int(spans_BT.max()) >= values_BK.shape[1]:
        raise TrainError(
            f"a row has {int(spans_BT.max()) + 1} turns, but only {values_BK.shape[1]} values of turns were given"
        )
    return torch.where(spans_BT < 0, 0.0, values_BK.gather(1, spans_BT.clamp_min(0)))
