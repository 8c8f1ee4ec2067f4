"""Cases are registered by decorator and run one after another; a failure says what was got and what was expected."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from palestra.errors import PalestraError, SandboxError
from palestra.sandboxes import BACKENDS, open_sandbox
from palestra.sandboxes.base import Limits, Sandbox

Capability = Literal[
    "isolation", "snapshots", "sessions", "cgroups", "disk", "kills-all", "rlimits", "usage", "streams", "cancels"
]
CAPABILITIES: dict[str, frozenset[Capability]] = {
    "local": frozenset(get_args(Capability)),
    "process": frozenset({"rlimits", "usage", "streams", "cancels"}),
    "container": frozenset({"isolation", "kills-all", "rlimits", "streams", "cancels"}),
    "remote": frozenset({"rlimits"}),
}
QUICK = Limits(wall_s=10.0)


class Failed(Exception):
    """A case did not hold."""


@dataclass(frozen=True)
class Trial:
    """What a case gets: a fresh sandbox and ways to say what must be."""

    box: Sandbox

    async def sh(self, text: str, **options: Any) -> Any:
        options.setdefault("limits", QUICK)
        return await self.box.exec(["sh", "-c", text], **options)

    def equal(self, got: object, expected: object, what: str = "") -> None:
        if got != expected:
            raise Failed(f"{what or 'value'}: got {got!r}, expected {expected!r}")

    def true(self, holds: object, what: str) -> None:
        if not holds:
            raise Failed(what)

    async def refused(self, work: Awaitable[object], what: str) -> None:
        try:
            got = await work
        except SandboxError:
            return
        raise Failed(f"{what}: got {got!r}, expected SandboxError")


Body = Callable[[Trial], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    name: str
    promise: str
    needs: frozenset[Capability]
    body: Body


CASES: dict[str, Case] = {}
_FILES = ("commands", "files", "isolation", "limits", "state")


def case(*needs: Capability) -> Callable[[Body], Body]:
    """Register a case: its name is the function's, its promise the docstring."""

    def register(body: Body) -> Body:
        name = body.__name__.replace("_", "-")
        CASES[name] = Case(name, (body.__doc__ or "").strip(), frozenset(needs), body)
        return body

    return register


def load() -> None:
    for name in _FILES:
        importlib.import_module(f"palestra.sandboxes.conformance.{name}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """status: "passed", "failed" or "skipped"; reason: why, where it is not passed."""

    name: str
    promise: str
    status: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    backend: str
    protections: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    def count(self, status: str) -> int:
        return sum(verdict.status == status for verdict in self.verdicts)

    @property
    def passed(self) -> bool:
        """No case failed, and at least one passed: a back end that skips everything has shown nothing."""
        return self.count("failed") == 0 and self.count("passed") > 0


async def run(
    backend: str,
    *,
    only: Sequence[str] = (),
    open: Callable[[], Sandbox] | None = None,
    tell: Callable[[Verdict], None] = lambda verdict: None,
) -> Report:
    """Run the suite. ``open`` makes a sandbox where the back end needs options of its own.

    Raises SandboxError where the back end cannot run on this machine, with the way out."""
    load()
    make = open or (lambda: open_sandbox(backend))
    async with make() as box:
        first = await box.exec(["true"])
    offered = CAPABILITIES[backend] if backend in BACKENDS else frozenset()
    verdicts = []
    for chosen in CASES.values():
        if not only or chosen.name in only:
            verdicts.append(await _one(chosen, make, backend, offered))
            tell(verdicts[-1])
    return Report(backend, first.protections, tuple(verdicts))


async def _one(chosen: Case, make: Callable[[], Sandbox], backend: str, offered: frozenset[Capability]) -> Verdict:
    started = time.perf_counter()

    def verdict(status: str, reason: str = "") -> Verdict:
        return Verdict(chosen.name, chosen.promise, status, reason, time.perf_counter() - started)

    lacking = sorted(chosen.needs - offered)
    if lacking:
        return verdict("skipped", f"the {backend} back end offers no {' and no '.join(lacking)}")
    try:
        async with make() as box:
            await asyncio.wait_for(chosen.body(Trial(box)), 60)
    except (Failed, PalestraError) as error:
        return verdict("failed", str(error))
    except TimeoutError:
        return verdict("failed", "it did not end within 60 s")
    except Exception as error:  # no other may cross the contract: that is a failure of the back end, not of the suite
        return verdict("failed", f"{type(error).__name__} crossed the contract: {error}")
    return verdict("passed")
