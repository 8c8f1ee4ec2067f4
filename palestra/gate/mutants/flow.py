"""Flow: a statement left out, another exception, a loop that ends early or never starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from palestra.gate.mutants.edits import Edit, Site

DELETED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Assert, ast.Return, ast.Break, ast.Continue)


def deletion(site: Site) -> Iterator[Edit]:
    """A statement → ``pass``, but no docstring, nor a ``return`` of the outermost block: the return operator's."""
    node = site.node
    if not isinstance(node, DELETED) or is_text(node):
        return
    if isinstance(node, ast.Return) and isinstance(site.parent, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    yield Edit("deletion", node, "pass")


def is_text(node: ast.AST) -> bool:
    """A docstring, or any other text that stands alone as a statement."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def exception(site: Site) -> Iterator[Edit]:
    """Another exception raised; a handler that raises again; one that does nothing."""
    node = site.node
    if isinstance(node, ast.Raise) and node.exc is not None:
        yield Edit("exception", node, "raise RuntimeError")
    if isinstance(node, ast.ExceptHandler):
        first = node.body[0]
        if not (isinstance(first, ast.Raise) and first.exc is None):
            yield Edit("exception", first, "raise")
        if isinstance(node.type, ast.Name):
            other = "ZeroDivisionError" if node.type.id != "ZeroDivisionError" else "KeyError"
            yield Edit("exception", node.type, other)


def loop(site: Site) -> Iterator[Edit]:
    """``break`` ↔ ``continue``; one round only; no round; the rounds in reverse."""
    node = site.node
    if isinstance(node, ast.Break):
        yield Edit("loop", node, "continue")
    elif isinstance(node, ast.Continue):
        yield Edit("loop", node, "break")
    elif isinstance(node, ast.For | ast.While):
        if not isinstance(node.body[-1], ast.Break | ast.Continue | ast.Return | ast.Raise):
            yield Edit("loop", node.body[-1], "break", after=True)
        if isinstance(node, ast.While):
            yield Edit("loop", node.test, "False")
        else:
            yield Edit("loop", node.iter, "()")
            yield Edit("loop", node.iter, f"reversed(list({ast.unparse(node.iter)}))")
