"""The settings of a training run, as a recipe file holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from palestra.config import Config
from palestra.train.optim import OptimiserSettings, SftOptimiser


class SftSettings(Config):
    """Supervised training on stored trajectories.

    source      name or id of the store's run whose trajectories are imitated; those of score 1, of split "train"
    batch_size  trajectories a step
    """

    source: str = "gold"
    steps: int = Field(210, ge=1)
    batch_size: int = Field(64, ge=1)
    checkpoint_every: int = Field(100, ge=1)
    optimiser: SftOptimiser = SftOptimiser()


class RlSettings(Config):
    """Online RL.

    recipe            name of an algorithm (palestra.algos.RECIPES)
    groups, group_size  tasks a step, rollouts of each
    reference_every   steps between two measurements of the KL to the starting policy (1 where the recipe needs it)
    checkpoint_every  steps between two checkpoints; what a crash costs at most, though never a stored rollout
    max_faults        largest share of a step's rollouts that may lack a score; above it the run stops, as training on
                      what happened to survive is training on something else
    """

    recipe: str = "dapo"
    steps: int = Field(175, ge=1)
    groups: int = Field(64, ge=1)
    group_size: int = Field(8, ge=2)
    temperature: float = Field(1.0, gt=0.0)
    max_tokens: int = Field(40, ge=1)
    reference_every: int = Field(5, ge=1)
    checkpoint_every: int = Field(10, ge=1)
    max_faults: float = Field(0.1, ge=0.0, le=1.0)
    optimiser: OptimiserSettings = OptimiserSettings()


class TrainSettings(Config):
    """A training run.

    name            of the run in the store; also what --resume looks for
    model           where the weights start: native:tiny, or native:PATH
    environments    bundles, or folders of bundles
    store, out      the store's path; the folder for checkpoints and the final model (out/model)
    slots_per_batch  token slots of one micro-batch, padding included; bounds memory
    threads         that share prompts and micro-batches. Both change no result but for the last bit of sums, which is
                    why they stand with the run
    """

    method: Literal["sft", "rl"]
    name: str
    model: str = "native:tiny"
    environments: tuple[Path, ...] = ()
    store: Path = Path("palestra.db")
    out: Path
    seed: int = Field(0, ge=0)
    threads: int = Field(2, ge=1)
    slots_per_batch: int = Field(1024, ge=64)
    allow_uncertified: bool = False
    sft: SftSettings = SftSettings()
    rl: RlSettings = RlSettings()

    @model_validator(mode="after")
    def _rl_has_environments(self) -> TrainSettings:
        if self.method == "rl" and not self.environments:
            raise ValueError('method "rl" needs environments')
        return self
