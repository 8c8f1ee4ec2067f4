"""Errors, one flat family named by the boundary that was crossed.

A message gives the thing, the rule, what was got, what was expected and the way out, in one sentence that needs no
traceback. ``boundary`` is the one place where foreign exceptions become ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class PalestraError(Exception):
    """Base of all. ``exit_code`` is what the command line exits with: 2 for wrong usage or input, 1 for "it is not
    so"."""

    exit_code = 2


class ConfigError(PalestraError):
    """A setting is unknown, missing or out of range."""


class ForgeError(PalestraError):
    """Source code from which no environment can be made."""


class BundleError(PalestraError):
    """A bundle on disk is not what a bundle must be."""


class TaskError(PalestraError):
    """An environment could not make, open or step a task; foreign exceptions of its code arrive as this."""


class ModelError(PalestraError):
    """A policy could not be loaded, or could not answer."""


class SandboxError(PalestraError):
    """A sandbox could not be made or used. What the sandboxed program did is an ExecResult, never this."""


class GraderError(PalestraError):
    """A grader failed at its own work; the attempt stays unscored."""


class StoreError(PalestraError):
    """The store cannot be opened, read or written."""


class TrainError(PalestraError):
    """A training step cannot be taken on what was given."""


class GateError(PalestraError):
    """An environment was asked to train without a valid certificate."""


class OutputError(PalestraError):
    """A file or folder that we were told to write cannot be written."""


@contextmanager
def boundary(kind: type[PalestraError], doing: str) -> Iterator[None]:
    """Turn any foreign exception of the block into ``kind``; ours, cancellation and interrupts pass untouched."""
    try:
        yield
    except PalestraError:
        raise
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        raise kind(f"{doing}{where}: {error.strerror or error}") from error
    except Exception as error:
        raise kind(f"{doing}: {type(error).__name__}: {error}") from error


def nearest(name: str, choices: Iterable[str]) -> str:
    """The tail of an "unknown name" message: the nearest choice, then all of them.

    >>> nearest("grop", ["grpo", "rloo"])
    'did you mean grpo? (choices: grpo, rloo)'
    """
    listed = sorted(choices)
    close = difflib.get_close_matches(name, listed, n=1)
    asked = f"did you mean {close[0]}? " if close else ""
    return f"{asked}(choices: {', '.join(listed)})"
