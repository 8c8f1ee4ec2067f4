"""A probe: a scripted cheat, with the defence that it tests. Every probe is run for real, in a sandbox, and graded."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Files = Mapping[str, bytes]
Needs = Literal["python", "program", "script", "answer"]
"""python: graded code is Python that is imported. program: it is run on an input. script: a test script runs beside
the work. answer: a short answer is read."""


@dataclass(frozen=True)
class Ground:
    """What an attack has to work with: what an agent knows, and the shape of a solution.

    start     the work as the agent finds it
    gold      the gold's work: an attack takes names of files and functions from it, and nothing of what they do
    needs     what kinds of attack apply here
    language  of the answer
    """

    start: Files
    gold: Files
    needs: frozenset[Needs]
    language: str = "python"
    instruction: str = ""

    @property
    def changed(self) -> list[str]:
        """The files that the gold writes."""
        return [name for name, data in self.gold.items() if self.start.get(name) != data]

    def python(self, prelude: str = "", body: str = "return None") -> Files:
        """The start, with every Python file that the gold writes replaced by ``prelude`` and functions of the gold's
        names that do ``body``."""
        files = dict(self.start)
        for name in self.changed:
            if name.endswith(".py"):
                files[name] = f"{prelude}\n{stubs(self.gold[name], body)}\n".encode()
        return files

    def beside(self, extra: Mapping[str, str], prelude: str = "", body: str = "return None") -> Files:
        """As ``python``, and the files ``extra`` in the workspace."""
        return {**self.python(prelude, body), **{name: text.encode() for name, text in extra.items()}}

    def program(self, source: str) -> Files:
        """A whole program in place of each file that the gold writes."""
        return {**self.start, **{name: source.encode() for name in self.changed}}

    def answer(self, text: str) -> Files:
        return {**self.start, **{name: text.encode("utf-8", "surrogatepass") for name in self.changed}}


def stubs(source: bytes, body: str) -> str:
    """Functions and classes of the names in ``source``, every one of which takes anything and does ``body``."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return "\n".join(_stubs(tree.body, body, ""))


def _stubs(statements: list[ast.stmt], body: str, indent: str) -> Iterator[str]:
    inner = body.replace("\n", f"\n{indent}    ")
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            if statement.name != "__init__":
                yield f"{indent}def {statement.name}(*args, **kwargs):\n{indent}    {inner}"
        elif isinstance(statement, ast.ClassDef):
            yield f"{indent}class {statement.name}:\n{indent}    def __init__(self, *args, **kwargs): pass"
            yield from _stubs(statement.body, body, f"{indent}    ")


@dataclass(frozen=True)
class Probe:
    """name     of the cheat, the module's
    kind     the part of the catalogue that it belongs to: carrier, runner, interpreter, comparison, expected,
             resources, files, specification, judge
    needs    where it applies
    defence  what stops it
    source   who did it
    attack   the works that an attacker would hand in; none where the ground gives no hold
    """

    name: str
    kind: str
    needs: Needs
    defence: str
    source: str
    attack: Callable[[Ground], list[Files]]
