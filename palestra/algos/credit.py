"""Credit: the rewards of a group to the advantages of its rollouts.

Each is a frozen function (rewards_G, facts) -> advantages_G, in float32. A group of one, or one whose rewards are all
equal, carries no comparison: every function here returns zeros for it (other libraries return the raw reward for a
group of one). What a credit must know beside the rewards stands in its ``needs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from palestra.errors import TrainError


@dataclass(frozen=True)
class Facts:
    """What is known of a group beside its rewards; None where the batch does not hold it.

    lengths_G       sampled tokens of each rollout
    greedy_reward   [] the reward of the same task's greedy rollout
    log_weights_G   log π(rollout) − log μ(rollout), of each rollout as a whole
    wins_GG         [i, j]: share of comparisons that i won against j, of those judged; the diagonal is not read
    """

    lengths_G: Tensor | None = None
    greedy_reward: Tensor | None = None
    log_weights_G: Tensor | None = None
    wins_GG: Tensor | None = None

    def need(self, name: str, who: object) -> Tensor:
        """The fact called ``name``; TrainError where it is missing, naming what the batch does hold."""
        value: Tensor | None = getattr(self, name)
        if value is None:
            held = [known for known in self.__dataclass_fields__ if getattr(self, known) is not None]
            raise TrainError(
                f"{who!r} needs {name}, which this batch lacks; it holds: {', '.join(held) or 'rewards alone'}"
            )
        return value


NO_FACTS = Facts()


class Credit(Protocol):
    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor: ...


def is_flat(rewards_G: Tensor) -> bool:
    """Whether the group carries no comparison: one rollout, or all rewards equal."""
    return bool((rewards_G == rewards_G[0]).all())


def checked(rewards_G: Tensor) -> Tensor:
    """The rewards as float32. TrainError for an empty group or a reward that is not finite, naming its position."""
    if rewards_G.dim() != 1 or len(rewards_G) == 0:
        raise TrainError(f"a group's rewards are one number per rollout, got shape {tuple(rewards_G.shape)}")
    is_finite_G = torch.isfinite(rewards_G)
    if not bool(is_finite_G.all()):
        at = int((~is_finite_G).nonzero()[0])
        raise TrainError(
            f"reward of rollout {at} of its group is {float(rewards_G[at])}; an unscored rollout must be left out"
        )
    return rewards_G.float()


@dataclass(frozen=True)
class GroupZScore:
    """A_i = (r_i − mean(r)) / (std(r) + ε): GRPO (arXiv:2402.03300).

    ddof  1 divides the variance by G − 1 (verl, TRL, OpenRLHF), 0 by G;  epsilon  1e-6 in verl, 1e-4 in TRL.
    """

    ddof: int = 1
    epsilon: float = 1e-6

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        if is_flat(rewards_G):
            return torch.zeros_like(rewards_G)
        std = rewards_G.std(correction=self.ddof)
        return (rewards_G - rewards_G.mean()) / (std + self.epsilon)


@dataclass(frozen=True)
class GroupCenter:
    """A_i = r_i − mean(r): GRPO without the division, which weighs easy and hard tasks up (Dr. GRPO,
    arXiv:2503.20783)."""

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        return torch.zeros_like(rewards_G) if is_flat(rewards_G) else rewards_G - rewards_G.mean()


@dataclass(frozen=True)
class LeaveOneOut:
    """A_i = r_i − mean of the other rewards = (r_i − mean(r)) · G / (G − 1): RLOO (arXiv:2402.14740)."""

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        if is_flat(rewards_G):
            return torch.zeros_like(rewards_G)
        size = len(rewards_G)
        return (rewards_G - rewards_G.mean()) * (size / (size - 1))


@dataclass(frozen=True)
class MaxRL:
    """A_i = (r_i − mean(r)) / mean(r): maximum-likelihood RL (arXiv:2602.02710), for rewards >= 0.

    A group whose mean is 0 carries no signal and gives zeros, not NaN. TrainError for a negative reward.
    """

    def __call__(self, rewards_G: Tensor, facts: Facts = NO_FACTS) -> Tensor:
        rewards_G = checked(rewards_G)
        if bool((rewards_G < 0).any()):
            raise TrainError(
                f"MaxRL needs rewards >= 0, got {float(rewards_G.min())}; use GroupCenter for signed rewards"
            )
        if is_flat(rewards_G):
            return torch.zeros_like(rewards_G)
        mean = rewards_G.mean()
        return (rewards_G - mean) / mean
