"""Checkpoints: everything that a run needs to go on to the same numbers, written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from palestra.errors import StoreError, TrainError, boundary
from palestra.files import atomic_folder, tree_hash
from palestra.models.load import load_model, save_model
from palestra.models.tiny import TinyLM
from palestra.store import Store
from palestra.train.optim import Optimiser

KEPT = 2
"""Checkpoints kept of a run: the last, and the one before in case its disk fails."""


def save_checkpoint(
    store: Store,
    run: str,
    folder: Path,
    step: int,
    model: TinyLM,
    optimiser: Optimiser,
    state: Mapping[str, Any],
    *,
    trained: Sequence[str] = (),
) -> None:
    """Write the checkpoint after ``step`` optimiser steps, then point the store at it.

    The pointer and the marks on the groups it was ``trained`` on are one transaction: whoever resumes sees either the
    checkpoint with its groups spent, or neither. Older checkpoints go only after that.
    """
    target = folder / f"step-{step:06d}"
    with atomic_folder(target) as fresh:
        save_model(model, step, fresh)
        torch.save(optimiser.state_dict(), fresh / "optimiser.pt")
        (fresh / "state.json").write_text(json.dumps(dict(state), indent=2) + "\n")
    store.commit_checkpoint(run, step, str(target), tree_hash(target), trained)
    for old in sorted(folder.glob("step-*"))[:-KEPT]:
        shutil.rmtree(old)


def load_checkpoint(store: Store, run: str, model: TinyLM, optimiser: Optimiser) -> tuple[int, dict[str, Any]] | None:
    """Bring ``model`` and ``optimiser`` to the run's last checkpoint; its step and state, or None where there is none.

    StoreError when the files are gone or not those that were written.
    """
    last = store.last_checkpoint(run)
    if last is None:
        return None
    folder = Path(last.path)
    if not folder.is_dir() or tree_hash(folder) != last.sha256:
        raise StoreError(
            f"run {run}: its checkpoint {folder} is {'changed' if folder.is_dir() else 'missing'}; restore that folder "
            "as it was written, or start the run anew without --resume"
        )
    with boundary(TrainError, f"loading the checkpoint {folder}"):
        saved, _ = load_model(folder)
        model.load_state_dict(saved.state_dict())
        optimiser.load_state_dict(torch.load(folder / "optimiser.pt", weights_only=True))
        state = json.loads((folder / "state.json").read_text())
    return last.step, state
