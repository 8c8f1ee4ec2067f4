"""Calls: two arguments in the wrong order, an option forgotten, the sides of an operator swapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from palestra.gate.mutants.edits import Edit, Site, swap

NAME = "argument"
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)


def argument(site: Site) -> Iterator[Edit]:
    """``f(a, b)`` → ``f(b, a)``, ``f(a, key=b)`` → ``f(a)``, ``a - b`` → ``b - a``."""
    node = site.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ORDERED) and not _text(node.left):
        yield swap(site, NAME, ast.BinOp(node.right, node.op, node.left))
    if not isinstance(node, ast.Call):
        return
    for place, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
            continue
        args = [*node.args[:place], second, first, *node.args[place + 2 :]]
        yield swap(site, NAME, ast.Call(node.func, args, node.keywords))
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            others = node.keywords[:place] + node.keywords[place + 1 :]
            yield swap(site, NAME, ast.Call(node.func, node.args, others))


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
