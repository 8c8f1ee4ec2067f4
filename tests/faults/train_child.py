"""A small RL run as a process of its own, to be killed: prints each step that is done. Run by test_resume."""

from __future__ import annotations

import sys
from pathlib import Path

from palestra.store import Store
from palestra.train.settings import TrainSettings
from palestra.train.sync import train_rl
from tests.toy import ParityEnvironment

STEPS = 9


def settings(folder: Path) -> TrainSettings:
    rl = {"steps": STEPS, "groups": 4, "group_size": 4, "max_tokens": 3, "checkpoint_every": 4}
    return TrainSettings.model_validate(
        {
            "method": "rl",
            "name": "rl",
            "environments": (folder,),
            "out": folder,
            "store": folder / "s.db",
            "threads": 1,
            "rl": {**rl, "optimiser": {"lr": 0.003}},
        }
    )


def main(folder: Path, resume: bool) -> None:
    with Store.open(folder / "s.db", create=True) as store:
        envs = [ParityEnvironment("toy.a"), ParityEnvironment("toy.b")]
        train_rl(settings(folder), envs, store, resume=resume, on_step=lambda step, _: print(step, flush=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--resume" in sys.argv)
