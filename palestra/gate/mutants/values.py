"""Values: another constant, another thing returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from palestra.gate.mutants.edits import Edit, Site, swap


def constant(site: Site) -> Iterator[Edit]:
    """A number one more and one less, a text emptied or filled, True ↔ False, None → 0."""
    node = site.node
    if isinstance(node, ast.JoinedStr):
        yield swap(site, "constant", ast.Constant(""))
    # ``x is 0`` is a warning of the compiler; ``is`` itself is mutated as a comparison.
    above = site.parent
    if not isinstance(node, ast.Constant) or (
        isinstance(above, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in above.ops)
    ):
        return
    for value in _others(node.value):
        yield swap(site, "constant", _literal(value))


def _others(value: object) -> list[object]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1]
        case float() | complex():
            return [value + 1.0, value * 2 if value else -1.0]
        case str():
            return ["" if value else "mutant"]
        case bytes():
            return [b"" if value else b"mutant"]
        case None:
            return [0]
    return []


def _literal(value: object) -> ast.expr:
    """A negative number as the sign and the number, as the parser reads it."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)  # type: ignore[arg-type]


def returned(site: Site) -> Iterator[Edit]:
    """``return e`` → ``return None``; a truth value returned turned round."""
    node = site.node
    if not isinstance(node, ast.Return) or node.value is None:
        return
    if not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield Edit("return", node, "return None")
    if isinstance(node.value, ast.BoolOp | ast.Call | ast.Name):
        yield Edit("return", node, "return " + ast.unparse(ast.UnaryOp(ast.Not(), node.value)))
