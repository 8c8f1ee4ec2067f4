"""Losses of preferences: pairs of a chosen and a rejected answer, single answers that are wanted or not, reward models.

Each is a frozen function to one loss per pair (or answer), [N], to be averaged by whoever calls it. Log-probabilities
are sums over an answer's tokens (lengths turn them into means where a paper wants means); those of the reference are
taken as they are, without a gradient. TrainError where a number is not finite or shapes differ."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from palestra.algos.numbers import check_vector
from palestra.errors import TrainError


@dataclass(frozen=True)
class Pairs:
    """log π(answer | prompt) of chosen and rejected, [N] each; the reference's, and the answers' lengths in tokens,
    where a loss needs them."""

    chosen_N: Tensor
    rejected_N: Tensor
    ref_chosen_N: Tensor | None = None
    ref_rejected_N: Tensor | None = None
    chosen_lengths_N: Tensor | None = None
    rejected_lengths_N: Tensor | None = None

    def logits(self) -> Tensor:
        """log π(chosen)/π(rejected)."""
        chosen_N = check_vector("log-probability of a chosen answer", self.chosen_N)
        return chosen_N - check_vector("log-probability of a rejected answer", self.rejected_N, len(chosen_N))

    def against_reference(self) -> Tensor:
        """log π(chosen)/π(rejected) − the same of the reference: at β the difference of implicit rewards."""
        apart_N = self.logits()
        chosen_N, rejected_N = (self._needed(name) for name in ("ref_chosen_N", "ref_rejected_N"))
        return apart_N - (chosen_N - rejected_N).detach()

    def means(self) -> tuple[Tensor, Tensor]:
        """Mean log-probability of a token, of chosen and of rejected."""
        self.logits()
        lengths = [self._needed(name) for name in ("chosen_lengths_N", "rejected_lengths_N")]
        if any(bool((length_N < 1).any()) for length_N in lengths):
            raise TrainError("an answer of no tokens has no mean log-probability; leave its pair out")
        return self.chosen_N / lengths[0], self.rejected_N / lengths[1]

    def _needed(self, name: str) -> Tensor:
        values_N: Tensor | None = getattr(self, name)
        if values_N is None:
            raise TrainError(f"this loss needs {name}, which the pairs lack")
        return check_vector(name, values_N, len(self.chosen_N))


@dataclass(frozen=True)
class Dpo:
    """−(1 − ε)·log σ(β·h) − ε·log σ(−β·h), h = ``against_reference`` (arXiv:2305.18290; ε > 0: conservative DPO).

    With the pairs drawn from the policy itself and ranked by a judge it is online DPO (arXiv:2402.04792)."""

    beta: float = 0.1
    smoothing: float = 0.0

    def __call__(self, pairs: Pairs) -> Tensor:
        scaled_N = self.beta * pairs.against_reference()
        return -(1 - self.smoothing) * logsigmoid(scaled_N) - self.smoothing * logsigmoid(-scaled_N)


@dataclass(frozen=True)
class Ipo:
    """(h − 1/(2β))²: identity preference optimisation (arXiv:2310.12036), bounded where DPO runs away on pairs that are
    never contradicted. h over sums, as in the paper; TRL takes means of tokens."""

    beta: float = 0.1

    def __call__(self, pairs: Pairs) -> Tensor:
        return (pairs.against_reference() - 1 / (2 * self.beta)).square()


@dataclass(frozen=True)
class SimPo:
    """−log σ(β·(mean log π(chosen) − mean log π(rejected)) − γ), without a reference (arXiv:2405.14734)."""

    beta: float = 2.0
    gamma: float = 1.0

    def __call__(self, pairs: Pairs) -> Tensor:
        chosen_N, rejected_N = pairs.means()
        return -logsigmoid(self.beta * (chosen_N - rejected_N) - self.gamma)


@dataclass(frozen=True)
class Orpo:
    """−mean log π(chosen) − λ·log σ(log odds(chosen)/odds(rejected)), odds = p/(1 − p) of p = exp(mean log π), the mean
    being over an answer's tokens (arXiv:2403.07691). TrainError where an answer is certain, p = 1: its odds have no
    bound."""

    weight: float = 0.1

    def __call__(self, pairs: Pairs) -> Tensor:
        chosen_N, rejected_N = pairs.means()
        return -chosen_N - self.weight * logsigmoid(_log_odds(chosen_N) - _log_odds(rejected_N))


def _log_odds(means_N: Tensor) -> Tensor:
    if bool((means_N >= 0).any()):
        raise TrainError(f"the mean log-probability of an answer must be below 0, got {float(means_N.detach().max())}")
    return means_N - torch.log(-torch.expm1(means_N))


@dataclass(frozen=True)
class Rebel:
    """((h)/η − (r(chosen) − r(rejected)))²: regression of the difference of rewards on that of log ratios to the policy
    that sampled both (arXiv:2404.16767); the reference of the pairs is that policy. Called with reward gaps, [N]."""

    eta: float = 1.0

    def __call__(self, pairs: Pairs, gaps_N: Tensor) -> Tensor:
        apart_N = pairs.against_reference()
        return (apart_N / self.eta - check_vector("reward gap", gaps_N, len(apart_N))).square()


@dataclass(frozen=True)
class Kto:
    """λ·(1 − σ(±β·(log π/π_ref − z))): + for wanted answers, − for others (arXiv:2402.01306). No pairs are needed.

    z  KL(π ‖ π_ref) as a batch of mismatched prompts and answers estimates it, in nats: max(mean, 0), no gradient."""

    beta: float = 0.1
    wanted: float = 1.0
    unwanted: float = 1.0

    def __call__(self, logprobs_N: Tensor, ref_logprobs_N: Tensor, is_wanted_N: Tensor, kl: Tensor) -> Tensor:
        logprobs_N = check_vector("log-probability of an answer", logprobs_N)
        ref_N = check_vector("reference log-probability of an answer", ref_logprobs_N, len(logprobs_N)).detach()
        if is_wanted_N.dtype != torch.bool or is_wanted_N.shape != logprobs_N.shape:
            raise TrainError(f"is_wanted_N must be {len(logprobs_N)} bools, got {tuple(is_wanted_N.shape)}")
        gained_N = self.beta * (logprobs_N - ref_N - kl.detach().clamp_min(0))
        weights_N = torch.where(is_wanted_N, self.wanted, self.unwanted)
        return weights_N * (1 - torch.where(is_wanted_N, gained_N, -gained_N).sigmoid())


def bradley_terry(chosen_N: Tensor, rejected_N: Tensor, margins_N: Tensor | None = None) -> Tensor:
    """−log σ(r(chosen) − r(rejected) − margin), [N], of a reward model's scores; the margin says by how much the chosen
    one was preferred (Llama 2, arXiv:2307.09288)."""
    chosen_N = check_vector("score of a chosen answer", chosen_N)
    apart_N = chosen_N - check_vector("score of a rejected answer", rejected_N, len(chosen_N))
    return -logsigmoid(apart_N if margins_N is None else apart_N - check_vector("margin", margins_N, len(chosen_N)))
