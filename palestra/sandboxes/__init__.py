"""Isolated places to run commands.

``base`` is the contract; ``local`` isolates with bubblewrap, ``container`` with Docker or Podman, ``remote`` runs
elsewhere through swe-rex; ``process`` isolates nothing and says so. ``pool`` keeps sandboxes ready; ``zygote`` forks an
interpreter per call; ``conformance`` is what every back end must do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from palestra.errors import SandboxError, nearest
from palestra.sandboxes.base import ExecResult, Limits, Mount, Sandbox, Usage
from palestra.sandboxes.interpreters import python_mounts

__all__ = ["BACKENDS", "ExecResult", "Limits", "Mount", "Sandbox", "Usage", "open_sandbox", "python_mounts"]

BACKENDS = {
    "local": "LocalSandbox",
    "process": "ProcessSandbox",
    "container": "ContainerSandbox",
    "remote": "RemoteSandbox",
}
"""Name -> class, in the module of that name."""


def open_sandbox(
    backend: str = "local",
    *,
    workspace: Path | None = None,
    mounts: Sequence[Mount] = (),
    limits: Limits | None = None,
    image: str | Path | None = None,
) -> Sandbox:
    """A sandbox of the named back end, to be used with ``async with``.

    workspace  a folder of the host that the sandbox works in; None: a private one, removed on close
    mounts     host paths shown read-only inside
    limits     of every ``exec`` that names none
    image      of a container: the name of one, or a Path to a folder with a Dockerfile

    Raises SandboxError: unknown back end, the back end cannot run on this machine (with the command that mends it), the
    workspace is no folder. There is no fall-back to less isolation."""
    if backend not in BACKENDS:
        raise SandboxError(f"unknown sandbox back end {backend!r}: {nearest(backend, BACKENDS)}")
    kind = getattr(import_module(f"palestra.sandboxes.{backend}"), BACKENDS[backend])
    if image is not None and backend != "container":
        raise SandboxError(
            f"the {backend} back end has no images, so none of {str(image)!r}; ask for the container back end"
        )
    options = {} if image is None else {"image": image}
    sandbox: Sandbox = kind(workspace, mounts, limits or Limits(), **options)
    return sandbox
