"""Credit below the rollout: among steps taken from the same state, and along a tree of rollouts."""

from __future__ import annotations

import torch
from torch import Tensor

from palestra.algos.credit import Credit, GroupZScore
from palestra.algos.numbers import check_vector
from palestra.errors import TrainError

ROOT = -1
"""Parent of the root."""


def within(rewards_N: Tensor, groups_N: Tensor, credit: Credit) -> Tensor:
    """``credit`` applied to each set of entries with the same group id, [N].

    Groups may be prompts, environments, or (prompt, turn number) pairs. A baseline per turn number is biased where the
    policy chooses when to stop: who still plays at turn t is not a fair sample. An entry alone in its group gets 0."""
    rewards_N = check_vector("reward", rewards_N)
    if groups_N.shape != rewards_N.shape:
        raise TrainError(f"groups must name one per reward: got {tuple(groups_N.shape)}, {len(rewards_N)} rewards")
    made_N = torch.zeros_like(rewards_N)
    for group in sorted(set(groups_N.tolist())):
        is_here_N = groups_N == group
        made_N[is_here_N] = credit(rewards_N[is_here_N]).to(rewards_N.dtype)
    return made_N


def anchored(
    episode_N: Tensor, returns_N: Tensor, anchors_N: Tensor, *, weight: float = 1.0, credit: Credit | None = None
) -> Tensor:
    """A_n = A_episode + weight · A_step: step-level groups by anchor state (GiGPO, arXiv:2505.10978), [N].

    episode_N   advantage of each step's whole rollout within its prompt's group
    returns_N   discounted return from each step on (``returns.discounted``)
    anchors_N   id of the state that the step was taken from, told apart by prompt: steps from equal states compare
    credit      of the returns within an anchor; the paper's: GroupZScore(), or GroupCenter()

    A state that was seen once compares with nothing: the episode's advantage alone."""
    episode_N = check_vector("advantage of the episode of step", episode_N, len(returns_N))
    return episode_N + weight * within(returns_N, anchors_N, credit or GroupZScore())


def tree_values(parents_N: Tensor, rewards_N: Tensor) -> tuple[Tensor, Tensor]:
    """Value of each node of a tree of rollouts: the mean reward of the leaves below it; and the count of these leaves.

    parents_N   [N] long, the index of each node's parent, smaller than its own; ROOT for a root (several are a forest)
    rewards_N   [N] read at leaves alone
    TrainError for a parent that is not before its child, or a leaf whose reward is not finite."""
    is_wrong_N = (parents_N >= torch.arange(len(parents_N))) | (parents_N < ROOT)
    if bool(is_wrong_N.any()):
        at = int(is_wrong_N.nonzero()[0])
        raise TrainError(
            f"node {at} has parent {int(parents_N[at])}; a parent stands before its child, {ROOT} for none"
        )
    is_leaf_N = torch.ones(len(parents_N), dtype=torch.bool)
    is_leaf_N[parents_N[parents_N != ROOT]] = False
    sums_N = check_vector("reward of node", torch.where(is_leaf_N, rewards_N, 0.0)).clone()
    leaves_N = is_leaf_N.to(sums_N.dtype)
    for node in range(len(parents_N) - 1, -1, -1):
        parent = int(parents_N[node])
        if parent != ROOT:
            sums_N[parent] += sums_N[node]
            leaves_N[parent] += leaves_N[node]
    return sums_N / leaves_N, leaves_N


def parent_relative(values_N: Tensor, parents_N: Tensor) -> Tensor:
    """A_n = V(n) − V(parent of n): what choosing this branch added, [N]; 0 for a root.

    Along a path the advantages telescope to leaf reward − root value."""
    above_N = values_N[parents_N.clamp_min(0)]
    return torch.where(parents_N == ROOT, 0.0, values_N - above_N)


def sibling_relative(values_N: Tensor, parents_N: Tensor) -> Tensor:
    """A_n = V(n) − mean V of the other children of its parent, [N]; 0 for a root, and for an only child."""
    is_kin_NN = (parents_N[:, None] == parents_N) & (parents_N != ROOT)[:, None]
    is_kin_NN &= ~torch.eye(len(parents_N), dtype=torch.bool)
    others_N = is_kin_NN.sum(-1)
    mean_N = (is_kin_NN * values_N).sum(-1) / others_N.clamp_min(1)
    return torch.where(others_N == 0, 0.0, values_N - mean_N)


def global_and_local(values_N: Tensor, leaves_N: Tensor, parents_N: Tensor) -> Tensor:
    """A_n = [(V(n) − V(root)) + (V(n) − V(parent))] / √(leaves below n): TreeRL (arXiv:2506.11902), [N].

    The root stands as node 0. Nodes that many rollouts share are not counted once for each."""
    return (values_N - values_N[0] + parent_relative(values_N, parents_N)) / leaves_N.sqrt()
