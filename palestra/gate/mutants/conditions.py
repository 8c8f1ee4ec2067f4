"""Conditions: another comparison, a moved boundary, another connective."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from palestra.gate.mutants.edits import Edit, Site, swap

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
SHIFTED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def comparison(site: Site) -> Iterator[Edit]:
    """Each comparison of a chain turned to its opposite."""
    yield from _compared(site, "comparison", OPPOSITE)


def boundary(site: Site) -> Iterator[Edit]:
    """``<`` ↔ ``<=``, ``>`` ↔ ``>=``; the end of a slice and the last bound of a range moved by one."""
    yield from _compared(site, "boundary", SHIFTED)
    node, parent = site.node, site.parent
    if not isinstance(node, ast.expr) or isinstance(node, ast.Starred):
        return
    ends_slice = isinstance(parent, ast.Slice) and node is parent.upper
    ends_range = (
        isinstance(parent, ast.Call)
        and isinstance(parent.func, ast.Name)
        and parent.func.id == "range"
        and node in parent.args[:2]
        and node is parent.args[:2][-1]
    )
    # A constant end is moved by the constant operator already.
    if (ends_slice or ends_range) and not isinstance(node, ast.Constant):
        yield swap(site, "boundary", ast.BinOp(node, ast.Sub(), ast.Constant(1)))


def boolean(site: Site) -> Iterator[Edit]:
    """``and`` ↔ ``or``, ``not`` dropped, a condition negated."""
    node, parent = site.node, site.parent
    if isinstance(node, ast.BoolOp):
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield swap(site, "boolean", ast.BoolOp(op, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield swap(site, "boolean", node.operand)
    # The negation of a single comparison is the comparison operator's mutant.
    elif isinstance(node, ast.expr) and _decides(node, parent) and not isinstance(node, ast.Compare | ast.Constant):
        yield swap(site, "boolean", ast.UnaryOp(ast.Not(), node))


def _decides(node: ast.expr, parent: ast.AST | None) -> bool:
    if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.Assert):
        return node is parent.test
    return isinstance(parent, ast.comprehension) and node in parent.ifs


def _compared(site: Site, name: str, table: dict[type[ast.cmpop], type[ast.cmpop]]) -> Iterator[Edit]:
    node = site.node
    if not isinstance(node, ast.Compare):
        return
    for place, op in enumerate(node.ops):
        if type(op) in table:
            ops = [table[type(op)]() if n == place else old for n, old in enumerate(node.ops)]
            yield swap(site, name, ast.Compare(node.left, ops, node.comparators))
