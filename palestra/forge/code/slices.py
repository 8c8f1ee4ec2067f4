"""Cut a function out of its module, with all that it needs and nothing else.

What it needs are the module's own definitions and constants that its text names, those that these name, and imports of
the standard library. A function that needs more (another module of its package, a name bound in a condition) stays
where it is: its task then shows the package's files."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Slice:
    """source  a module of its own;  name  of the function in it"""

    source: str
    name: str


def cut(text: str, name: str) -> Slice | None:
    """The slice of the module ``text`` for its function ``name``; None where it cannot be cut out."""
    tree = ast.parse(text)
    bound: dict[str, ast.stmt] = {}
    for statement in tree.body:
        for found in _bound(statement):
            bound[found] = statement
    if not isinstance(bound.get(name), ast.FunctionDef):
        return None
    wanted, waiting = set[int](), [name]
    kept: list[ast.stmt] = []
    while waiting:
        statement = bound[waiting.pop()]
        if id(statement) in wanted:
            continue
        if not _is_plain(statement):
            return None
        wanted.add(id(statement))
        kept.append(statement)
        waiting += [used for used in _used(statement) if used in bound]
    future = [one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    lines = text.split("\n")
    ordered = sorted([*future, *kept], key=lambda one: one.lineno)
    return Slice(_joined(lines, ordered), name)


def _joined(lines: list[str], statements: list[ast.stmt]) -> str:
    """The statements as they stand; two blank lines around definitions, as people write them."""
    parts: list[str] = []
    for statement in statements:
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
        piece = "\n".join(lines[first - 1 : statement.end_lineno])
        if parts and isinstance(statement, Named):
            parts.append("\n")
        parts.append(piece + "\n" + ("\n" if isinstance(statement, Named) else ""))
    return "".join(parts).rstrip("\n") + "\n"


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement of a module binds."""
    if isinstance(statement, Named):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, Named):
                yield node.name
            elif isinstance(node, ast.alias):
                yield node.asname or node.name.partition(".")[0]


def _used(statement: ast.stmt) -> set[str]:
    """Names that may be looked up in the module: every name in the text, and those in annotations that are texts."""
    used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    used |= {name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names}
    return used


def _is_plain(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.level == 0 and _is_standard(statement.module or "") and statement.names[0].name != "*"
    if isinstance(statement, ast.Import):
        return all(_is_standard(alias.name) for alias in statement.names)
    return isinstance(statement, Named | ast.Assign | ast.AnnAssign | ast.AugAssign)


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def without_body(text: str, name: str) -> str | None:
    """``text`` with the body of its function ``name`` taken out: the docstring stays, and calling it raises
    NotImplementedError. None where the body stands on the line of its head."""
    tree = ast.parse(text)
    found = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
    if not found:
        return None
    function = found[-1]
    first, last = function.body[0], function.body[-1]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    start = first.end_lineno if has_docstring and first.end_lineno else first.lineno - 1
    if first.lineno == function.lineno or last.end_lineno is None:
        return None
    lines = text.split("\n")
    stub = " " * first.col_offset + "raise NotImplementedError"
    return "\n".join([*lines[:start], stub, *lines[last.end_lineno :]])


def crash_at(text: str, line: int) -> str:
    """``text`` with the innermost statement that spans ``line`` replaced by one that raises: the calls that this
    changes are those that reach it."""
    spanning = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and not isinstance(node, Named) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    found = min(spanning, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)
    if found is None or found.end_lineno is None:
        return text
    lines = text.split("\n")
    raising = " " * found.col_offset + "raise RuntimeError"
    return "\n".join([*lines[: found.lineno - 1], raising, *lines[found.end_lineno :]])
