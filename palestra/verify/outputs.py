"""When what a program printed is what was expected. Each is given bytes, and runs nothing of the graded program."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Protocol

from palestra.errors import GraderError
from palestra.sandboxes import Limits, open_sandbox
from palestra.verify.languages import language

_NUMBER = re.compile(rb"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,5})?")


CHECKING = Limits(wall_s=10.0, cpu_s=10.0)


class Comparison(Protocol):
    async def same(self, stdin: bytes, got: bytes, wanted: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Exact:
    """Byte for byte; a line feed at the very end may be there or not."""

    async def same(self, stdin: bytes, got: bytes, wanted: bytes) -> bool:
        return got.removesuffix(b"\n") == wanted.removesuffix(b"\n")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The same words in the same order, whatever blanks and line ends stand between them."""

    async def same(self, stdin: bytes, got: bytes, wanted: bytes) -> bool:
        return got.split() == wanted.split()


@dataclass(frozen=True, slots=True)
class Floats:
    """As Tokens; where a decimal number is expected, one that differs by at most ``abs_tol`` or ``rel_tol`` times the
    expected will do. Whole numbers without point and exponent are words: they must be the same. So are nan and inf."""

    rel_tol: float = 1e-6
    abs_tol: float = 1e-9

    async def same(self, stdin: bytes, got: bytes, wanted: bytes) -> bool:
        said, expected = got.split(), wanted.split()
        return len(said) == len(expected) and all(map(self._near, said, expected))

    def _near(self, said: bytes, expected: bytes) -> bool:
        if said == expected:
            return True
        if expected.lstrip(b"+-").isdigit() or not (_NUMBER.fullmatch(said) and _NUMBER.fullmatch(expected)):
            return False
        got, wanted = float(said), float(expected)
        return math.isfinite(got) and abs(got - wanted) <= max(self.abs_tol, self.rel_tol * abs(wanted))


@dataclass(frozen=True, slots=True)
class Checker:
    """A program of the task's author decides: it is called with the names of three files (the input, what was printed,
    what was expected), prints "right" or "wrong", and exits with 0. (No exit code says "wrong": an interpreter's crash
    would say it too.) It runs in a sandbox of its own, where the graded program never was. Any other end is the
    checker's failure: GraderError."""

    source: str
    name: str = "python"
    limits: Limits = CHECKING

    async def same(self, stdin: bytes, got: bytes, wanted: bytes) -> bool:
        used = language(self.name)
        used.require()
        async with open_sandbox("local", mounts=used.mounts(), limits=used.bounded(self.limits)) as box:
            await box.write(used.source, self.source.encode())
            for file, data in (("input", stdin), ("output", got), ("expected", wanted)):
                await box.write(file, data)
            if used.build and (built := await box.exec(used.build)).exit_code:
                raise GraderError(f"the checker does not build: {built.stderr[-200:]!a}")
            ended = await box.exec([*used.run, "input", "output", "expected"])
        said = ended.stdout.strip()
        if ended.exit_code or said not in (b"right", b"wrong"):
            words = f"exit code {ended.exit_code}, {said[-60:]!a}, {ended.stderr[-200:]!a}"
            raise GraderError(f'the checker must print "right" or "wrong" and exit with 0, got {words}')
        return said == b"right"
