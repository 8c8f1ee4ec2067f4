"""Read the example calls out of a docstring: those whose arguments are literals, or names bound to literals before."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from palestra.verify.inside.literals import NotPlain, show


@dataclass(frozen=True, slots=True)
class Example:
    """One call of an example: positional and keyword arguments, plain data."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Examples:
    """The calls that could be read, and how many could not because an argument is a function or another object."""

    calls: tuple[Example, ...]
    opaque: int


def read_examples(doc: str, name: str) -> Examples:
    """The example calls of the function ``name`` in ``doc``; nothing is executed; none at all is no error."""
    try:
        parsed = doctest.DocTestParser().get_examples(doc)
    except ValueError:
        return Examples((), 0)  # a malformed example block: not an example
    known: dict[str, Any] = {}
    calls: list[Example] = []
    opaque = 0
    for tree in _trees(parsed):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node.func) == name:
                example = _example(node, known)
                if example is None:
                    opaque += 1
                elif example not in calls:
                    calls.append(example)
        _bind(tree, known)
    return Examples(tuple(calls), opaque)


def _trees(parsed: list[doctest.Example]) -> Iterator[ast.Module]:
    for example in parsed:
        try:
            yield ast.parse(example.source)
        except SyntaxError:
            continue  # prose after >>>, or another version's syntax: no call can be read from it


def _called(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _example(node: ast.Call, known: dict[str, Any]) -> Example | None:
    try:
        args = tuple(literal(argument, known) for argument in node.args)
        kwargs = {str(word.arg): literal(word.value, known) for word in node.keywords if word.arg}
        show((args, kwargs))
    except (ValueError, NotPlain):
        return None
    return Example(args, kwargs) if len(kwargs) == len(node.keywords) else None


def _bind(tree: ast.Module, known: dict[str, Any]) -> None:
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    try:
                        known[target.id] = literal(statement.value, known)
                    except ValueError:
                        known.pop(target.id, None)


def literal(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression of literals and known names; ValueError where it is anything else."""
    if isinstance(node, ast.Name):
        if node.id in known:
            return known[node.id]
        raise ValueError(f"{node.id} is not bound to a literal")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ValueError("not a literal") from None
