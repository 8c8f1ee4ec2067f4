"""The graders that a bundle can name. The next one is a module here and a line in KINDS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from palestra.config import parse
from palestra.envs.graders.answer import AnswerSpec
from palestra.envs.graders.base import Grader, Place, Spec
from palestra.envs.graders.calls import CallsSpec
from palestra.envs.graders.command import CommandSpec
from palestra.envs.graders.stdio import StdioSpec
from palestra.errors import BundleError, ConfigError, nearest

__all__ = ["KINDS", "Grader", "Place", "Spec", "spec_of"]

KINDS: dict[str, type[Any]] = {
    "calls": CallsSpec,
    "stdio": StdioSpec,
    "answer": AnswerSpec,
    "command": CommandSpec,
}


def spec_of(file: Path, settings: Any) -> Spec:
    """The settings of a grader, as ``file`` has them. Raises BundleError: an unknown kind or key, a wrong value."""
    if not isinstance(settings, dict) or not isinstance(settings.get("kind"), str):
        raise BundleError(f"{file}: [metadata.palestra.grader] must name its kind {nearest('', KINDS)}")
    kind = settings["kind"]
    if kind not in KINDS:
        raise BundleError(f"{file}: [metadata.palestra.grader] kind {kind!r} is unknown, {nearest(kind, KINDS)}")
    try:
        spec: Spec = parse(KINDS[kind], settings, f"{file}: [metadata.palestra.grader]")
    except ConfigError as error:
        raise BundleError(str(error)) from None
    return spec
