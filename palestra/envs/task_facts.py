"""A bundle that is one task: what ``task.toml`` says of it, and of its grader.

A Harbor task without ``[metadata.palestra]`` is one too: kind "harbor", graded by its own ``tests/test.sh``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from palestra.config import Config, parse
from palestra.envs.dockerfile import Image, read_image
from palestra.envs.graders import Place, Spec, spec_of
from palestra.envs.graders.command import CommandSpec
from palestra.envs.lines import read_text
from palestra.errors import BundleError, ConfigError

SCHEMA = 1
LONGEST_INSTRUCTION = 1 << 18


class Metadata(Config):
    """``[metadata.palestra]`` of a task bundle.

    kind        what is asked: implement, repair, port, …
    forge       what made it; "hand" where a person did
    split       the split that the task belongs to
    language    of the answer
    max_turns   policy calls at most, when the agent works in the workspace
    packages    names of packages whose installation would give the answer
    provenance  where it comes from: package, version, licence, symbol, …
    """

    schema_: int = Field(alias="schema")
    kind: str = Field(min_length=1)
    forge: str = "hand"
    split: Literal["train", "validation", "heldout"] = "train"
    language: str = "python"
    seed: int = 0
    difficulty: float | None = Field(default=None, ge=0, le=1)
    max_turns: int = Field(default=30, ge=1)
    packages: tuple[str, ...] = ()
    provenance: dict[str, Any] = Field(default_factory=dict)
    grader: dict[str, Any] = Field(default_factory=dict)


@dataclass(frozen=True)
class TaskFacts:
    """One task of a bundle. ``id`` is its name without the maker's: "toolz.frequencies-implement"."""

    path: Path
    id: str
    kind: str
    instruction: str
    metadata: Metadata
    spec: Spec
    image: Image

    @property
    def tests(self) -> Path:
        return self.path / "tests"

    def place(self, env: Mapping[str, str] | None = None, forkers: Any = None) -> Place:
        """Where a grader of this bundle is made for."""
        return Place(self.tests, self.image.packages, self.image.workdir, {**self.image.env, **(env or {})}, forkers)


def task_facts(path: Path, data: Mapping[str, Any]) -> TaskFacts:
    """The facts of the bundle at ``path`` whose ``task.toml`` says ``data``. Raises BundleError."""
    file = path / "task.toml"
    found = _table(file, data, "metadata").get("palestra")
    metadata, spec = _foreign() if found is None else _ours(file, found)
    timeout = _table(file, data, "verifier").get("timeout_sec")
    if found is None and isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
        spec = CommandSpec(timeout_s=float(timeout))
    name = _table(file, data, "task").get("name")
    workdir = _table(file, data, "environment").get("workdir")
    for key, value in (("[task] name", name), ("[environment] workdir", workdir)):
        if value is not None and (not isinstance(value, str) or not value):
            raise BundleError(f"{file}: {key} must be a text, got {value!r:.40}")
    instruction = read_text(path / "instruction.md", LONGEST_INSTRUCTION)
    image = read_image(path / "environment", workdir)
    id = str(name).rpartition("/")[2] if name else path.resolve().name
    return TaskFacts(path, id, metadata.kind, instruction, metadata, spec, image)


def _table(file: Path, data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise BundleError(f"{file}: [{name}] must be a table, got {found!r:.40}")
    return found


def _foreign() -> tuple[Metadata, Spec]:
    return Metadata(schema=SCHEMA, kind="harbor", forge="harbor"), CommandSpec()


def _ours(file: Path, found: Any) -> tuple[Metadata, Spec]:
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        got = found.get("schema") if isinstance(found, dict) else found
        raise BundleError(f"{file}: [metadata.palestra] must have schema {SCHEMA}, got {got!r:.40}; forge it again")
    try:
        metadata = parse(Metadata, found, f"{file}: [metadata.palestra]")
    except ConfigError as error:
        raise BundleError(str(error)) from None
    return metadata, spec_of(file, metadata.grader)
