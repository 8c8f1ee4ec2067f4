"""The settings of the main job."""

from __future__ import annotations

from pydantic import Field

from palestra.config import Config
from palestra.train.settings import RlSettings, SftSettings


class QuickstartSettings(Config):
    """packages       installed packages to forge from
    cases          problems wanted per function
    limit          environments per package at most (None: all that can be made)
    gold_tasks     gold rollouts that the warm start imitates, over all environments
    eval_tasks, eval_sampled, k   held-out tasks answered greedily; those of them also answered k times for pass@k
    """

    packages: tuple[str, ...] = Field(("inflection", "humanize"), min_length=1)
    seed: int = Field(0, ge=0)
    threads: int = Field(2, ge=1)
    cases: int = Field(2000, ge=200)
    limit: int | None = Field(None, ge=1)
    gold_tasks: int = Field(16_000, ge=1)
    eval_tasks: int = Field(2000, ge=20)
    eval_sampled: int = Field(400, ge=1)
    k: int = Field(8, ge=1)
    sft: SftSettings = SftSettings()
    rl: RlSettings = RlSettings()


SHORT = (
    "cases=400",
    "limit=4",
    "gold_tasks=1200",
    "eval_tasks=160",
    "eval_sampled=40",
    "sft.steps=80",
    "sft.batch_size=32",
    "rl.steps=6",
    "rl.groups=16",
    "rl.checkpoint_every=2",
    "rl.reference_every=2",
)
"""Overrides that run every phase in under half a minute; too short to learn anything."""
