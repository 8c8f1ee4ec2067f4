"""One policy-gradient algorithm: its parts, what it needs of a batch, and the loss that they make together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass

from torch import Tensor

from palestra.algos.aggregate import Aggregate, TokenMean
from palestra.algos.correction import Correction, effective_share, statistics
from palestra.algos.credit import Credit
from palestra.algos.kl import Estimator, k1, k3
from palestra.algos.normalise import BatchNorm
from palestra.algos.numbers import check_finite, masked
from palestra.algos.ratio import Ratio, bounded_exp, token_ratio
from palestra.algos.surrogate import Surrogate, Unclipped
from palestra.errors import TrainError


@dataclass(frozen=True)
class Recipe:
    """credit × normalise × ratio × surrogate × aggregate (× correction, KL, entropy): all that tells one
    policy-gradient algorithm from another.

        loss = Σ_bt w_bt · [ c_bt · surrogate(ratio_bt, A_bt) + kl_coefficient · kl_bt − entropy_coefficient · H_bt ]

    with w = aggregate(is_trained), A = normalise(credit(rewards)), c = correction(proximal, behaviour).

    normalise       advantages over the whole batch, after each group's credit; None leaves them
    correction      None: the ratio is that of the policy to the sampler. Otherwise the ratio is that of the policy to
                    the proximal policy (this step's, before its first update), and c corrects for proximal ≠ sampler
    kl              estimator of KL to the reference in the loss; without effect at kl_coefficient 0
    keeps_flat      whether groups without a comparison stay in the batch (they add no gradient, but do add to the
                    denominators); otherwise they are dropped and counted
    """

    credit: Credit
    ratio: Ratio = token_ratio
    surrogate: Surrogate = Unclipped()  # noqa: RUF009 frozen, without state
    aggregate: Aggregate = TokenMean()  # noqa: RUF009
    normalise: BatchNorm | None = None
    correction: Correction | None = None
    kl: Estimator = k3
    kl_coefficient: float = 0.0
    entropy_coefficient: float = 0.0
    keeps_flat: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """What a batch must hold beyond sampled tokens, their log-probabilities and rewards, by name."""
        own = {"ref_logprobs": self.kl_coefficient, "entropy": self.entropy_coefficient}
        found = {name for name, coefficient in own.items() if coefficient}
        if self.correction is not None:
            found.add("proximal_logprobs")
        return frozenset(found).union(*(getattr(getattr(self, field.name), "needs", ()) for field in fields(self)))

    def require(self, held: Collection[str]) -> None:
        """TrainError where the recipe needs what a trainer, which holds ``held``, does not have."""
        if missing := sorted(self.needs - set(held)):
            raise TrainError(
                f"this recipe needs {', '.join(missing)}, which the batch lacks; it holds: {', '.join(sorted(held))}"
            )

    def to_plain(self) -> dict[str, str | float | bool | None]:
        """The recipe in full, as text: what is stored with a run and printed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value if isinstance(value, float | bool | None) else _written(value) for name, value in values.items()
        }

    def loss(
        self,
        *,
        logprobs_BT: Tensor,
        behaviour_logprobs_BT: Tensor,
        advantages_B1: Tensor,
        weights_BT: Tensor,
        is_trained_BT: Tensor,
        ref_logprobs_BT: Tensor | None = None,
        proximal_logprobs_BT: Tensor | None = None,
        entropy_BT: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a micro-batch, and statistics; both add up over micro-batches to those of the batch.

        advantages_B1  one per sequence, or [B, T], one per token
        weights_BT     this micro-batch's slice of ``aggregate(is_trained_BT of the whole batch)``
        entropy_BT     with its gradient, where the recipe has an entropy coefficient

        Statistics are sums under the same weights: clip_low, clip_high (share of tokens whose gradient was cut),
        ratio (mean), behaviour_k1 and behaviour_k3 (KL(sampler ‖ trainer): k1 = log μ − log π), with a reference
        kl_k1, kl_k3 (KL(π ‖ ref)), and with a correction those of ``correction.statistics``. TrainError where a trained
        token's number is not finite, with its row and column, or where something that the recipe needs is None.
        """
        given = {
            "log-probability": logprobs_BT,
            "behaviour log-probability": behaviour_logprobs_BT,
            "advantage": advantages_B1.expand_as(logprobs_BT),
            "reference log-probability": ref_logprobs_BT,
            "proximal log-probability": proximal_logprobs_BT,
            "entropy": entropy_BT,
        }
        for what, values_BT in given.items():
            if values_BT is not None:
                check_finite(what, values_BT, is_trained_BT)
        now_BT, then_BT = masked(logprobs_BT, is_trained_BT), masked(behaviour_logprobs_BT, is_trained_BT)
        near_BT = behaviour_logprobs_BT
        if self.correction is not None:
            near_BT = _given(proximal_logprobs_BT, "proximal_logprobs").detach()
        log_ratios_BT = self.ratio(logprobs_BT, near_BT, is_trained_BT)
        advantages_BT = masked(advantages_B1.expand_as(logprobs_BT), is_trained_BT)
        losses_BT, is_low_BT, is_high_BT = self.surrogate(log_ratios_BT, advantages_BT, is_trained_BT)
        stats = {
            "clip_low": is_low_BT,
            "clip_high": is_high_BT,
            "ratio": bounded_exp(log_ratios_BT),
            "behaviour_k1": k1(then_BT, now_BT),
            "behaviour_k3": k3(then_BT, now_BT),
        }
        if self.correction is not None:
            corrections_BT, *cut = self.correction(near_BT, behaviour_logprobs_BT, is_trained_BT)
            losses_BT = losses_BT * corrections_BT
            stats |= statistics(corrections_BT, *cut)
        if self.kl_coefficient:
            ref_BT = masked(_given(ref_logprobs_BT, "ref_logprobs"), is_trained_BT)
            losses_BT = losses_BT + self.kl_coefficient * self.kl(now_BT, ref_BT)
        if ref_logprobs_BT is not None:
            ref_BT = masked(ref_logprobs_BT, is_trained_BT)
            stats |= {"kl_k1": k1(now_BT, ref_BT), "kl_k3": k3(now_BT, ref_BT)}
        if self.entropy_coefficient:
            gain_BT = masked(self._entropy(entropy_BT, logprobs_BT), is_trained_BT)
            losses_BT = losses_BT - self.entropy_coefficient * gain_BT
        totals = {name: (value.detach() * weights_BT).sum() for name, value in stats.items()}
        return (losses_BT * weights_BT).sum(), totals

    def finished(self, totals: Mapping[str, float]) -> dict[str, float]:
        """The statistics of a batch from the sums over its micro-batches: with a correction, effective_share (ESS as a
        share of the tokens) in place of the sums that it is made from."""
        made = dict(totals)
        if self.correction is not None:
            one, square = made.pop("correction_one"), made.pop("correction_square")
            made["effective_share"] = effective_share(made["correction"], square, one)
        return made

    def _entropy(self, entropy_BT: Tensor | None, logprobs_BT: Tensor) -> Tensor:
        entropy_BT = _given(entropy_BT, "entropy")
        if logprobs_BT.requires_grad and not entropy_BT.requires_grad:
            raise TrainError("the entropy in this recipe's loss has no gradient: it must not be detached")
        return entropy_BT


def _written(part: object) -> str:
    """A part as it would be written: a function by its name, not by where it happens to lie in memory."""
    if is_dataclass(part) and not isinstance(part, type):
        inside = ", ".join(f"{field.name}={_written(getattr(part, field.name))}" for field in fields(part))
        return f"{type(part).__name__}({inside})"
    return str(getattr(part, "__name__", repr(part)))


def _given(values_BT: Tensor | None, name: str) -> Tensor:
    if values_BT is None:
        raise TrainError(f"this recipe needs {name}, which the batch lacks")
    return values_BT
