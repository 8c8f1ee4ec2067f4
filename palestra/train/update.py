"""One optimiser step on finished groups: credit, filter, loss, gradient; with an account of every sampled token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from palestra.algos import Recipe
from palestra.algos.aggregate import Ids
from palestra.algos.credit import Facts
from palestra.algos.filters import flat_reason
from palestra.errors import TrainError
from palestra.models.tiny import TinyLM
from palestra.models.workers import spread_over
from palestra.train.batch import Packed, pack
from palestra.train.gradient import Gradient, add_gradient, gradient
from palestra.train.logprobs import sampled_logprobs
from palestra.train.run import Run
from palestra.types import Group, Trajectory, Turn

UNSCORED = "unscored"
HELD = ("ref_logprobs", "proximal_logprobs", "entropy", "lengths_G", "prompts_B", "rollouts_B", "tasks_B")
"""What a batch of the synchronous trainer holds for a recipe, beside tokens, their log-probabilities and rewards."""


@dataclass(frozen=True)
class Credited:
    """The sequences to train on, one per policy call: its turn and the advantage of its rollout; and what was left out.

    prompts, rollouts, tasks        of each sequence: number of its group, of its rollout, of its environment
    dropped_groups, dropped_tokens  by named reason; sampled tokens = trained tokens + dropped tokens, always
    """

    turns: list[Turn]
    advantages: list[float]
    dropped_groups: Counter[str]
    dropped_tokens: Counter[str]
    prompts: list[int] = field(default_factory=list)
    rollouts: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)


def credit(algorithm: Recipe, groups: Sequence[Group]) -> Credited:
    """Advantages of every scored rollout. Unscored ones leave their group; groups without a comparison leave the batch
    unless the recipe keeps them. TrainError for a rollout whose tokens carry no log-probabilities."""
    algorithm.require(HELD)
    made = Credited([], [], Counter(), Counter())
    environments: dict[str, int] = {}
    rollouts = 0
    for number, group in enumerate(groups):
        scored = [(t, t.reward) for t in group.trajectories if t.reward is not None]
        made.dropped_tokens[UNSCORED] += sum(_tokens(t) for t in group.trajectories if t.reward is None)
        if not scored:
            made.dropped_groups[UNSCORED] += 1
            continue
        rewards_G = torch.tensor([reward for _, reward in scored])
        reason = flat_reason(rewards_G)
        if reason is not None and not algorithm.keeps_flat:
            made.dropped_groups[reason] += 1
            made.dropped_tokens[reason] += sum(_tokens(t) for t, _ in scored)
            continue
        facts = Facts(lengths_G=torch.tensor([_tokens(t) for t, _ in scored]))
        for (trajectory, _), advantage in zip(scored, algorithm.credit(rewards_G, facts).tolist(), strict=True):
            for turn in trajectory.turns:
                if turn.completion.logprobs is None:
                    raise TrainError(
                        f"rollout {trajectory.id}: its tokens carry no log-probabilities (text only), so it cannot be "
                        "trained on by RL; sample it from a native model, or use supervised training"
                    )
                made.turns.append(turn)
                made.advantages.append(advantage)
                made.prompts.append(number)
                made.rollouts.append(rollouts)
                made.tasks.append(environments.setdefault(group.task.env, len(environments)))
            rollouts += 1
    return made


def update(run: Run, algorithm: Recipe, groups: Sequence[Group], reference: TinyLM | None) -> dict[str, float]:
    """Take one optimiser step on ``groups``; with a ``reference`` its KL is measured (and used, where the recipe says
    so).

    Returns the recipe's statistics and: loss, entropy (nats, mean over trained tokens), grad_norm, trained (share of
    sampled tokens that were trained on), groups_kept (share), and groups_<reason> for each reason to drop one (share).
    When every group was dropped there is no signal and no step: only the account comes back.
    """
    credited = credit(algorithm, groups)
    trained = sum(len(turn.completion.ids) for turn in credited.turns)
    sampled = sum(_tokens(t) for group in groups for t in group.trajectories)
    if trained + credited.dropped_tokens.total() != sampled:
        raise TrainError(
            f"run {run.id}, step {run.step}: {sampled} tokens were sampled, but {trained} trained + "
            f"{dict(credited.dropped_tokens)} dropped do not add up to them"
        )
    stats = {"trained": trained / sampled, "groups_kept": 1 - credited.dropped_groups.total() / len(groups)}
    stats |= {f"groups_{reason}": count / len(groups) for reason, count in sorted(credited.dropped_groups.items())}
    if not credited.turns:
        return stats
    stats |= accumulate(run, algorithm, credited, reference)
    return stats | {"grad_norm": run.optimiser.step(run.step)}


def accumulate(run: Run, algorithm: Recipe, credited: Credited, reference: TinyLM | None) -> dict[str, float]:
    """Add the batch's gradient, micro-batch by micro-batch; the sums do not depend on how it was cut."""
    model, config, settings = run.policy.model, run.policy.model.config, run.settings
    behaviour_BT, is_trained_BT = behaviour(credited.turns)
    ids = Ids(torch.tensor(credited.prompts), torch.tensor(credited.rollouts))
    weights_BT = algorithm.aggregate(is_trained_BT, ids)
    advantages_BT = torch.tensor(credited.advantages).unsqueeze(-1).expand_as(weights_BT)
    if algorithm.normalise is not None:
        advantages_BT = algorithm.normalise(advantages_BT, is_trained_BT, torch.tensor(credited.tasks))

    def work(packed: Packed) -> tuple[Gradient, dict[str, Tensor]]:
        logprobs_BT, entropy_BT = sampled_logprobs(
            model, packed, temperature=settings.rl.temperature, entropy_gradient="entropy" in algorithm.needs
        )
        here = packed.sequences_B, slice(logprobs_BT.shape[1])
        loss, stats = algorithm.loss(
            logprobs_BT=logprobs_BT,
            behaviour_logprobs_BT=behaviour_BT[here],
            advantages_B1=advantages_BT[here],
            weights_BT=weights_BT[here],
            is_trained_BT=packed.is_sampled_BT,
            ref_logprobs_BT=_reference_logprobs(reference, packed, settings.rl.temperature),
            # One update a batch: the policy of this step's start is the policy now.
            proximal_logprobs_BT=logprobs_BT.detach(),
            entropy_BT=entropy_BT,
        )
        stats |= {"loss": loss.detach(), "entropy": (entropy_BT.detach() * weights_BT[here]).sum()}
        return gradient(loss, model), stats

    batches = pack(
        credited.turns, slots_per_batch=settings.slots_per_batch, window=config.window, padding=config.padding
    )
    totals: Counter[str] = Counter()
    for part, stats in spread_over(settings.threads, work, batches):
        add_gradient(model, part)
        totals.update({name: float(value) for name, value in stats.items()})
    return algorithm.finished(totals)


def behaviour(turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
    """The sampler's log-probabilities [B, T], zero where there is no token, and which tokens exist."""
    longest = max(len(turn.completion.ids) for turn in turns)
    logprobs_BT = torch.zeros(len(turns), longest)
    is_trained_BT = torch.zeros(len(turns), longest, dtype=torch.bool)
    for row, turn in enumerate(turns):
        reported = turn.completion.logprobs or ()
        logprobs_BT[row, : len(reported)] = torch.tensor(reported)
        is_trained_BT[row, : len(reported)] = True
    return logprobs_BT, is_trained_BT


@torch.no_grad()
def _reference_logprobs(reference: TinyLM | None, packed: Packed, temperature: float) -> Tensor | None:
    return None if reference is None else sampled_logprobs(reference, packed, temperature=temperature)[0]


def _tokens(trajectory: Trajectory) -> int:
    return sum(len(turn.completion.ids) for turn in trajectory.turns)
