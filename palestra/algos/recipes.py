"""Recipes: an algorithm is a value. A new paper is a line here, over the functions beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from palestra.algos.aggregate import PerMaxLen, SequenceMean, TokenMean
from palestra.algos.baselines import LengthWeighted, Median, Quantile
from palestra.algos.credit import GroupCenter, GroupZScore, LeaveOneOut, MaxRL
from palestra.algos.normalise import BatchNorm
from palestra.algos.objective import Recipe
from palestra.algos.ratio import product_ratio, sequence_ratio
from palestra.algos.surrogate import Cispo, Clip, GeometricMean, Sapo, Signed
from palestra.errors import ConfigError, nearest

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
REINFORCE_PP = replace(REINFORCE, surrogate=Clip(0.2, 0.2), normalise=BatchNorm())
"""arXiv:2501.03262, its variant with the group's mean as baseline: normalised over the batch's tokens, not the group.
Its KL in the reward is left out, as ``kl.penalised`` gives it."""
OPO = replace(REINFORCE, credit=LengthWeighted())
"""arXiv:2505.23585: the length-weighted baseline, exactly on policy."""
GMPO = replace(GRPO, surrogate=GeometricMean(0.4, 0.4))
"""arXiv:2507.20673: the geometric mean of the sequence's ratios, each bounded to e^±0.4."""
TOPR = replace(REINFORCE, ratio=product_ratio, surrogate=Signed(Cispo(0, 0), Cispo(1, 0)))
"""arXiv:2503.14286: good rollouts as in supervised training, bad ones by a sequence ratio bounded to [0, 1]. The
paper's reward is ±1 with a tuned baseline; here the group's mean decides what is good."""
MC_GRPO = replace(GRPO, credit=Median())
"""arXiv:2601.22582: the median as baseline."""
QAE = replace(DAPO, credit=Quantile(0.4), keeps_flat=True)
"""arXiv:2509.22611: a quantile as baseline, on DAPO's clip and mean."""

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
        "reinforce_pp": REINFORCE_PP,
        "opo": OPO,
        "gmpo": GMPO,
        "topr": TOPR,
        "mc_grpo": MC_GRPO,
        "qae": QAE,
    }
)


def recipe(name: str) -> Recipe:
    """The recipe called ``name``; ConfigError with the nearest name where there is none."""
    if name not in RECIPES:
        raise ConfigError(f"recipe {name!r} is unknown: {nearest(name, RECIPES)}")
    return RECIPES[name]
