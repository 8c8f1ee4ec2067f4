"""What the gate asks of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from palestra.config import Config


@dataclass(frozen=True, slots=True)
class Level:
    """golds    times that the gold is made and graded, each in other surroundings
    mutants  of the gold, at most; 0: none are made
    probes   whether the cheats are run
    """

    golds: int
    mutants: int
    probes: bool


LEVELS = {"quick": Level(2, 0, False), "full": Level(5, 20, True), "exhaustive": Level(10, 400, True)}


class GateConfig(Config):
    """level          quick: gold and null; full: also mutants and probes; exhaustive: every mutant, ten golds
    mutants_least  share of mutants that the grader must kill, those that are surely equivalent not counted
    gold_s         seconds that making and grading the gold may take
    similar_most   likeness to another bundle of the same kind in the set (estimated Jaccard), of code or else of text
    solvers        models whose pass rate is measured: scripted:gold, native:PATH …; solver_runs rollouts of each, of up
                   to solver_tokens tokens a turn at solver_temperature
    solved_least, solved_most  between which the best solver's pass rate must be
    draws          tasks drawn over all splits for the gold, the null answer, and every process but the first
    processes      fresh processes, each with another hash seed, time zone, locale, folder and order of calls
    null_most      share of drawn tasks that an empty answer may score on
    constant_most  share of all cases that one fixed answer may be right on
    echo_most      share of all cases that repeating the first argument may be right on
    call_s         CPU seconds that any one call may take, in the fastest of its runs
    wait_s         seconds of any kind that a drawn call may take, in the fastest of its runs
    import_s       seconds that importing the original may take
    memory_mib     largest resident set of any process, MiB
    seed           draws tasks and shuffles calls
    """

    level: Literal["quick", "full", "exhaustive"] = "full"
    mutants_least: float = Field(default=0.8, ge=0, le=1)
    gold_s: float = Field(default=120.0, gt=0)
    similar_most: float = Field(default=0.9, gt=0, le=1)
    solvers: tuple[str, ...] = ()
    solver_runs: int = Field(default=8, ge=1)
    solver_tokens: int = Field(default=1024, ge=1)
    solver_temperature: float = Field(default=1.0, ge=0)
    solved_least: float = Field(default=0.0, ge=0, le=1)
    solved_most: float = Field(default=1.0, ge=0, le=1)
    draws: int = Field(default=256, ge=200)
    processes: int = Field(default=5, ge=5, le=20)
    null_most: float = Field(default=0.0, ge=0, lt=1)
    constant_most: float = Field(default=0.5, ge=0, lt=1)
    echo_most: float = Field(default=0.5, ge=0, lt=1)
    call_s: float = Field(default=0.1, gt=0)
    wait_s: float = Field(default=0.5, gt=0)
    import_s: float = Field(default=5.0, gt=0)
    memory_mib: float = Field(default=512.0, gt=0)
    seed: int = 0
