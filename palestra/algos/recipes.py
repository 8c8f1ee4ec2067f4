"""Recipes: an algorithm is a value. A new paper is a line here, over the functions beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

from torch import Tensor

from palestra.algos.aggregate import Aggregate, PerMaxLen, SequenceMean, TokenMean
from palestra.algos.credit import Credit, GroupCenter, GroupZScore, LeaveOneOut, MaxRL
from palestra.algos.kl import Estimator, k1, k3
from palestra.algos.numbers import check_finite, masked
from palestra.algos.ratio import Ratio, bounded_exp, sequence_ratio, token_ratio
from palestra.algos.surrogate import Cispo, Clip, Sapo, Surrogate, Unclipped
from palestra.errors import ConfigError, TrainError, nearest


@dataclass(frozen=True)
class Recipe:
    """credit × ratio × surrogate × aggregate (× KL): all that tells one policy-gradient algorithm from another.

        loss = Σ_bt w_bt · [ surrogate(ratio_bt, A_b) + kl_coefficient · kl_bt ],   w = aggregate(is_trained)

    kl              estimator of KL to the reference in the loss; without effect at kl_coefficient 0
    keeps_flat      whether groups without a comparison stay in the batch (they add no gradient, but do add to the
                    denominators); otherwise they are dropped and counted
    """

    credit: Credit
    ratio: Ratio = token_ratio
    surrogate: Surrogate = Unclipped()  # noqa: RUF009 frozen, without state
    aggregate: Aggregate = TokenMean()  # noqa: RUF009
    kl: Estimator = k3
    kl_coefficient: float = 0.0
    keeps_flat: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """What a batch must hold beyond sampled tokens and rewards: "ref_logprobs" where KL is in the loss."""
        return frozenset({"ref_logprobs"} if self.kl_coefficient else ())

    def to_plain(self) -> dict[str, str | float | bool]:
        """The recipe in full, as text: what is stored with a run and printed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value if isinstance(value, float | bool) else getattr(value, "__name__", repr(value))
            for name, value in values.items()
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
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a micro-batch, and statistics; both add up over micro-batches to those of the batch.

        advantages_B1  one per sequence, or [B, T], one per token
        weights_BT     this micro-batch's slice of ``aggregate(is_trained_BT of the whole batch)``

        Statistics are sums under the same weights: clip_low, clip_high (share of tokens whose gradient was cut),
        ratio (mean), behaviour_k1 and behaviour_k3 (KL(sampler ‖ trainer): k1 = log μ − log π), and with a reference
        kl_k1, kl_k3 (KL(π ‖ ref)). TrainError where a trained token's number is not finite, with its row and column.
        """
        check_finite("log-probability", logprobs_BT, is_trained_BT)
        check_finite("behaviour log-probability", behaviour_logprobs_BT, is_trained_BT)
        check_finite("advantage", advantages_B1.expand_as(logprobs_BT), is_trained_BT)
        advantages_BT = masked(advantages_B1.expand_as(logprobs_BT), is_trained_BT)
        log_ratios_BT = self.ratio(logprobs_BT, behaviour_logprobs_BT, is_trained_BT)
        losses_BT, is_low_BT, is_high_BT = self.surrogate(log_ratios_BT, advantages_BT)
        loss = (losses_BT * weights_BT).sum()
        now_BT, then_BT = masked(logprobs_BT, is_trained_BT), masked(behaviour_logprobs_BT, is_trained_BT)
        stats = {
            "clip_low": is_low_BT,
            "clip_high": is_high_BT,
            "ratio": bounded_exp(log_ratios_BT),
            "behaviour_k1": k1(then_BT, now_BT),
            "behaviour_k3": k3(then_BT, now_BT),
        }
        if ref_logprobs_BT is not None:
            check_finite("reference log-probability", ref_logprobs_BT, is_trained_BT)
            ref_BT = masked(ref_logprobs_BT, is_trained_BT)
            stats |= {"kl_k1": k1(now_BT, ref_BT), "kl_k3": k3(now_BT, ref_BT)}
            if self.kl_coefficient:
                loss = loss + self.kl_coefficient * (self.kl(now_BT, ref_BT) * weights_BT).sum()
        elif self.needs:
            raise TrainError("this recipe has KL in its loss and needs reference log-probabilities; none were given")
        return loss, {name: (value.detach() * weights_BT).sum() for name, value in stats.items()}


REINFORCE = Recipe(credit=GroupCenter(), keeps_flat=True)
"""∇ = −(r − mean(r))·∇log π, corrected by the plain ratio (Williams, 1992, with the group's mean as baseline)."""
RLOO = replace(REINFORCE, credit=LeaveOneOut())
"""arXiv:2402.14740."""
GRPO = Recipe(credit=GroupZScore(), surrogate=Clip(0.2, 0.2), aggregate=SequenceMean(), keeps_flat=True)
"""arXiv:2402.03300, without the KL term, which most runs now leave out (its coefficient there is 0.04)."""
DR_GRPO = replace(GRPO, credit=GroupCenter(), aggregate=PerMaxLen(4096))
"""arXiv:2503.20783: no division by the standard deviation, none by the length."""
DAPO = replace(GRPO, surrogate=Clip(0.2, 0.28), aggregate=TokenMean(), keeps_flat=False)
"""arXiv:2503.14476: clip-higher, token mean, groups without a comparison dropped."""
GSPO = replace(GRPO, ratio=sequence_ratio, surrogate=Clip(3e-4, 4e-4))
"""arXiv:2507.18071."""
CISPO = replace(DAPO, surrogate=Cispo(), keeps_flat=True)
"""arXiv:2506.13585: token mean; the bound 1 + high = 5 is the one that TRL recommends."""
SAPO = replace(GRPO, surrogate=Sapo())
"""arXiv:2511.20347."""
MAX_RL = replace(REINFORCE, credit=MaxRL())
"""arXiv:2602.02710."""

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "reinforce": REINFORCE,
        "rloo": RLOO,
        "grpo": GRPO,
        "dr_grpo": DR_GRPO,
        "dapo": DAPO,
        "gspo": GSPO,
        "cispo": CISPO,
        "sapo": SAPO,
        "max_rl": MAX_RL,
    }
)


def recipe(name: str) -> Recipe:
    """The recipe called ``name``; ConfigError with the nearest name where there is none."""
    if name not in RECIPES:
        raise ConfigError(f"recipe {name!r} is unknown: {nearest(name, RECIPES)}")
    return RECIPES[name]
