"""A value for each prompt that outlives the step: the baseline of single-stream policy optimisation."""

from __future__ import annotations

from dataclasses import dataclass

from palestra.errors import TrainError


@dataclass(frozen=True)
class Beta:
    """Belief about a prompt's success rate: Beta(successes, failures), both > 0."""

    successes: float
    failures: float

    @property
    def mean(self) -> float:
        return self.successes / (self.successes + self.failures)


@dataclass(frozen=True)
class Tracker:
    """Called as (state, (reward, kl)) -> (state, advantage): SPO (arXiv:2509.13232).

        A = r − mean(state);   ρ = clamp(2^(−kl / half_life), low, high);   state' = (ρ·a + r, ρ·b + 1 − r)

    reward     in [0, 1];  kl  >= 0, nats: how far the policy has moved since the prompt was last seen
    half_life  the KL that halves the weight of the past
    low, high  the least and the most that is kept: memory of 1/(1 − low) to 1/(1 − high) visits

    The advantage compares with the belief *before* this reward, so that it does not depend on the action. Advantages
    are then normalised over the batch, by sequence (SPO) or by action token: ``BatchNorm``. ``start`` makes a first
    state.
    """

    half_life: float = 0.06
    low: float = 0.875
    high: float = 0.96

    def start(self, rate: float) -> Beta:
        """The belief after offline rollouts with this success rate, worth 1/(1 − low) of them. TrainError unless the
        rate lies in [0, 1]; it is moved inside by 1e-3, as a belief of exactly 0 or 1 is a certainty."""
        _check_unit("success rate", rate)
        size, inside = 1 / (1 - self.low), min(max(rate, 1e-3), 1 - 1e-3)
        return Beta(size * inside, size * (1 - inside))

    def __call__(self, state: Beta, seen: tuple[float, float]) -> tuple[Beta, float]:
        reward, kl = seen
        _check_unit("reward", reward)
        if not 0 <= kl:
            raise TrainError(f"a KL must be >= 0, got {kl}")
        kept = min(max(2 ** (-kl / self.half_life), self.low), self.high)
        return Beta(kept * state.successes + reward, kept * state.failures + 1 - reward), reward - state.mean


def _check_unit(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise TrainError(f"a {what} must lie in [0, 1] for a success-rate tracker, got {value}")
