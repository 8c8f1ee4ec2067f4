"""Policies by name, and models on disk."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from palestra.errors import ModelError, boundary, nearest

if TYPE_CHECKING:
    from palestra.models.client import Policy
    from palestra.models.native import NativePolicy
    from palestra.models.tiny import TinyLM

WEIGHTS, ABOUT = "model.safetensors", "model.json"


def load_policy(spec: str, *, seed: int = 0, threads: int = 1) -> Policy:
    """The policy that ``spec`` names; ``threads`` share the work of a native one.

    scripted:gold   the reference solution; also scripted:null, scripted:echo
    native:tiny     a new tiny model with weights drawn from ``seed``
    native:PATH     a model saved in folder PATH
    """
    kind, _, rest = spec.partition(":")
    if kind == "scripted" and rest:
        from palestra.models.scripted import scripted

        return scripted(rest)
    if kind == "native" and rest:
        return load_native(rest, seed=seed, threads=threads)
    raise ModelError(
        f"model {spec!r}: a model is kind:what, {nearest(spec, ['scripted:gold', 'native:tiny', 'native:PATH'])}"
    )


def load_native(what: str, *, seed: int = 0, threads: int = 1) -> NativePolicy:
    """``tiny`` or a folder, as a native policy. Raises ModelError where the folder holds no model of ours."""
    from palestra.models.native import NativePolicy
    from palestra.models.tiny import TinyLM

    if what == "tiny":
        model = TinyLM()
        model.reset(seed)
        return NativePolicy(model, workers=threads)
    model, version = load_model(Path(what))
    return NativePolicy(model, name=f"native:{what}", version=version, workers=threads)


def load_model(folder: Path) -> tuple[TinyLM, int]:
    """The model saved in ``folder`` and its policy version."""
    from safetensors.torch import load_file

    from palestra.models.tiny import TinyConfig, TinyLM

    if not (folder / ABOUT).is_file():
        raise ModelError(f"native:{folder}: no model here; a model is a folder with {WEIGHTS} and {ABOUT}")
    with boundary(ModelError, f"loading the model in {folder}"):
        about = json.loads((folder / ABOUT).read_text())
        if about["architecture"] != "tiny":
            raise ModelError(
                f"native:{folder}: architecture {about['architecture']!r} is unknown; this version reads 'tiny'"
            )
        model = TinyLM(TinyConfig(**about["config"]))
        model.load_state_dict(load_file(folder / WEIGHTS))
    return model, int(about["version"])


def save_model(model: TinyLM, version: int, folder: Path) -> None:
    """Write the model into an existing ``folder``."""
    from safetensors.torch import save_file

    save_file({name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}, folder / WEIGHTS)
    about = {"architecture": "tiny", "config": asdict(model.config), "version": version}
    (folder / ABOUT).write_text(json.dumps(about, indent=2) + "\n")
