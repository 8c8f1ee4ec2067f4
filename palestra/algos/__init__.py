"""Policy optimisation as values: credit × ratio × surrogate × aggregate × KL. Tensors only; no model, no I/O.

Axes: N groups, G rollouts of a group, B sampled sequences, T tokens. Masks are bool and named by what True means;
whatever stands where a mask is False changes nothing, NaN included.
"""

from palestra.algos.objective import Recipe
from palestra.algos.recipes import RECIPES, recipe

__all__ = ["RECIPES", "Recipe", "recipe"]
