"""Recipes: an algorithm is a value. A new paper is a line here, over the functions beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from palestra.algos.aggregate import PerMaxLen, SequenceMean, TokenMean
from palestra.algos.credit import GroupCenter, GroupZScore, LeaveOneOut, MaxRL
from palestra.algos.objective import Recipe
from palestra.algos.ratio import sequence_ratio
from palestra.algos.surrogate import Cispo, Clip, Sapo
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
