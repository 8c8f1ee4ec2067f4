"""Zygotes that a grader forks its calls from: a grading then costs a fork, not the start of a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from palestra.errors import GraderError, SandboxError
from palestra.sandboxes.base import Limits, Mount
from palestra.sandboxes.zygote import Reply, Zygote
from palestra.verify import inside
from palestra.verify.visible import INSIDE, LIB, python_view

LIMITS = Limits(wall_s=20.0, cpu_s=20.0, memory_mib=1024, processes=64, file_mib=16, output_bytes=1 << 22)
ENTRY = "import sys\nsys.modules['driver'].run(CALL, reply)"


class Forkers:
    """``size`` zygotes at most, started when first needed, each for one call at a time.

    packages  installed distributions that graded code may import; every other is hidden
    preload   modules of those to import once, before any graded code
    env       variables of the interpreter, as PYTHONHASHSEED or TZ

    ``async with Forkers(2) as forkers: FunctionCalls("f", forkers=forkers)``. To be used on one event loop."""

    def __init__(
        self,
        size: int = 2,
        *,
        packages: Sequence[str] = (),
        preload: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        if size < 1:
            raise GraderError(f"there must be at least 1 zygote, got size {size}")
        self.packages, self._preload, self.limits = tuple(packages), tuple(preload), limits
        self._env = dict(env or {})
        self._free: list[Zygote] = []
        self._slots = asyncio.Semaphore(size)
        self._closed = False

    async def call(self, payload: bytes, limits: Limits | None = None) -> Reply:
        """One run of ``inside.driver`` in a fork; where its zygote was lost, once more in another.

        Raises SandboxError: no zygote could be started, or the second was lost too."""
        try:
            async with self._zygote() as zygote:
                return await zygote.call(ENTRY, payload, limits=limits)
        except SandboxError:
            async with self._zygote() as zygote:
                return await zygote.call(ENTRY, payload, limits=limits)

    @contextlib.asynccontextmanager
    async def _zygote(self) -> AsyncIterator[Zygote]:
        async with self._slots:
            if self._closed:
                raise GraderError("these zygotes are closed; make others")
            zygote = self._free.pop() if self._free else await self._started()
            try:
                yield zygote
            except BaseException:
                await zygote.close()
                raise
            self._free.append(zygote)

    async def _started(self) -> Zygote:
        mounts = [*python_view(self.packages), Mount(Path(inside.__file__).parent, INSIDE)]
        # The driver takes its own folder off the path again: graded code finds its neighbours nowhere.
        zygote = Zygote(
            preload=(*self._preload, "driver"),
            mounts=mounts,
            paths=(str(INSIDE), *([str(LIB)] if self.packages else [])),
            env=self._env,
            limits=self.limits,
        )
        return await zygote.start()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._closed = True
        while self._free:
            await self._free.pop().close()


def bounded(limits: Limits, wall_s: float, output_bytes: int) -> Limits:
    """``limits`` for one call of at most ``wall_s`` seconds."""
    return replace(limits, wall_s=wall_s, cpu_s=wall_s, output_bytes=output_bytes)
