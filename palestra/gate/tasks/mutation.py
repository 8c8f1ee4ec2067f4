"""Mutants of the gold: small wrong changes, which the hidden tests must notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palestra.envs.graders.calls import CallsSpec
from palestra.errors import BundleError
from palestra.gate.config import LEVELS, GateConfig
from palestra.gate.mutants import Mutant, Mutants, mutants_of, python_mutants
from palestra.gate.subject import Check
from palestra.gate.tasks.workbench import Workbench, passes
from palestra.types import Unscored
from palestra.verify.parallel import each

if TYPE_CHECKING:
    from palestra.gate.tasks.checks import Found

SHOWN = 10
"""Survivors that the certificate lists."""
FEWEST = 3
"""With fewer mutants their share says nothing."""


async def mutants(bench: Workbench, config: GateConfig, found: Found) -> Check:
    """Enough of the gold's mutants are killed: graded below 1. A mutant that cannot be graded counts for nothing."""
    most = LEVELS[config.level].mutants
    if not most:
        return Check("mutants", True, f"not made at level {config.level}")
    pool, equivalent = _pool(bench, found, most, config.seed)
    if len(pool) < FEWEST:
        told = f"the gold gives {len(pool)} mutants, too few to measure"
        return Check("mutants", True, told, facts={"generated": len(pool)})
    scores = await each(pool, lambda one: bench.grade({**found.gold, one[0]: one[1].source.encode()}))
    unscored = sum(isinstance(score, Unscored) for score in scores)
    survived = [mutant for (_, mutant), score in zip(pool, scores, strict=True) if passes(score)]
    return _verdict(config, len(pool), len(pool) - unscored - len(survived), unscored, survived, equivalent)


def _verdict(
    config: GateConfig, count: int, killed: int, unscored: int, survived: list[Mutant], equivalent: int
) -> Check:
    judged = count - unscored
    share = killed / judged if judged else 0.0
    facts: dict[str, Any] = {
        "generated": count,
        "killed": killed,
        "unscored": unscored,
        "equivalent": equivalent,
        "survived": [mutant.plain() for mutant in survived[:SHOWN]],
    }
    if share < config.mutants_least:
        where = f", as line {survived[0].line} ({survived[0].operator})" if survived else ""
        told = (
            f"{killed} of {judged} mutants of the gold are killed ({share:.0%}), {config.mutants_least:.0%} must be: "
            f"add hidden cases that tell the {len(survived)} survivors from the gold{where}"
        )
        return Check("mutants", False, told, facts=facts)
    return Check("mutants", True, f"{killed} of {judged} mutants of the gold are killed ({share:.0%})", facts=facts)


def _pool(bench: Workbench, found: Found, most: int, seed: int) -> tuple[list[tuple[str, Mutant]], int]:
    """(file, mutant) of up to ``most``, spread over the files that the gold writes; how many are surely equivalent."""
    made: list[tuple[str, Mutants]] = []
    for name in found.ground.changed:
        one = _of_file(bench, found, name, most, seed)
        if one is not None and (one.live or one.equivalent):
            made.append((name, one))
    pool: list[tuple[str, Mutant]] = []
    for place in range(most):
        pool += [(name, one.live[place]) for name, one in made if place < len(one.live)]
    return pool[:most], sum(len(one.equivalent) for _, one in made)


def _of_file(bench: Workbench, found: Found, name: str, most: int, seed: int) -> Mutants | None:
    try:
        source = found.gold[name].decode()
        spec = bench.facts.spec
        if isinstance(spec, CallsSpec) and name == spec.artifact and spec.module is not None:
            return python_mutants(source, spec.symbol, limit=most, seed=seed, name=name)
        return mutants_of(source, name, limit=most, seed=seed)
    except (UnicodeDecodeError, BundleError):
        return None  # no source that can be read
