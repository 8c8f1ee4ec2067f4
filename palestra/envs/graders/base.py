"""What a bundle says of its grader: settings under ``[metadata.palestra.grader]``, hidden files in ``tests/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from palestra.verify.compose import Grader
from palestra.verify.forkers import Forkers

__all__ = ["Grader", "Place", "Spec"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a grader is made for.

    tests    the bundle's ``tests/``, which no agent sees
    image    what the bundle's Dockerfile asks for: ``packages`` that graded code may import, ``workdir``
    env      variables of the graded program: PYTHONHASHSEED, TZ …
    forkers  interpreters to fork from, for graders that can; None: the grader starts its own
    """

    tests: Path
    packages: tuple[str, ...] = ()
    workdir: str = "/app"
    env: Mapping[str, str] = field(default_factory=dict)
    forkers: Forkers | None = None


class Spec(Protocol):
    """The settings of one kind of grader.

    artifacts  what is copied out of the workspace for it: files, or folders with all that is in them
    """

    @property
    def artifacts(self) -> tuple[str, ...]: ...

    def grader(self, place: Place) -> Grader:
        """Raises BundleError, naming file and line, where a hidden file is not as it must be."""
        ...

    def hidden(self, tests: Path) -> Sequence[str]:
        """Texts that the agent may not see: expected values, hidden inputs."""
        ...

    def forks(self, packages: Sequence[str], env: Mapping[str, str]) -> Forkers | None:
        """Interpreters that several gradings can share; None where the kind uses none."""
        ...
