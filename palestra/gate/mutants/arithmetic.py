"""Another arithmetic operator, a dropped sign."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from palestra.gate.mutants.edits import Edit, Site, swap

NAME = "arithmetic"

OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.MatMult: ast.Mult,
}
"""What each operator becomes: never one with the same result on common values, as ``*`` and ``/`` have by 1."""


def arithmetic(site: Site) -> Iterator[Edit]:
    """``a + b`` → ``a - b``, ``a += b`` → ``a -= b``, ``-a`` → ``a``, ``~a`` → ``a``."""
    node = site.node
    if isinstance(node, ast.BinOp) and not _formats(node):
        yield swap(site, NAME, ast.BinOp(node.left, OTHER[type(node.op)](), node.right))
    elif isinstance(node, ast.AugAssign) and not _is_text(node.value):
        new = ast.AugAssign(node.target, OTHER[type(node.op)](), node.value)
        yield Edit(NAME, node, ast.unparse(new))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert):
        yield swap(site, NAME, node.operand)


def _formats(node: ast.BinOp) -> bool:
    """``"…" % values`` and ``"…" + text`` with a literal: any other operator only raises, which kills too easily."""
    return _is_text(node.left) or _is_text(node.right)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
