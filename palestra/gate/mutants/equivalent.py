"""Mutants that cannot be told from the original. Every rule here is certain; none is a guess.

A mutant that is equivalent for another reason stays among the live ones: no program can find them all."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any

UNREACHABLE = "the changed place cannot be reached"
SAME_CODE = "compiles to the same code"
MESSAGE = "only the message of an exception changes"
NEVER_READ = "the local name assigned is never read"

Fingerprint = tuple[Any, ...]


def fingerprint(tree: ast.Module) -> Fingerprint:
    """What the compiled module does, without docstrings, line numbers and file name. Nothing is executed.

    Raises SyntaxError where it does not compile."""
    return _code(compile(_Bare().visit(tree), "<gate>", "exec", dont_inherit=True, optimize=0))


class _Bare(ast.NodeTransformer):
    """Texts that stand alone, docstrings among them, become ``pass``."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Constant):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)


def _code(code: CodeType) -> Fingerprint:
    # repr tells 1, 1.0 and True apart, which compare equal, and 0.0 and -0.0.
    constants = tuple(_code(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags,
        code.co_exceptiontable,
    )


def unreachable(body: list[ast.stmt], found: set[int] | None = None) -> set[int]:
    """``id`` of each node below ``body`` that no run can reach: behind a return, raise, break or continue of the same
    block, or in a branch that a literal condition excludes."""
    found = set() if found is None else found
    ended = False
    for statement in body:
        if ended:
            found |= {id(node) for node in ast.walk(statement)}
            continue
        ended = isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)
        for block in _blocks(statement, found):
            unreachable(block, found)
    return found


def _blocks(statement: ast.stmt, found: set[int]) -> list[list[ast.stmt]]:
    if isinstance(statement, ast.If | ast.While) and isinstance(statement.test, ast.Constant):
        never = statement.orelse if statement.test.value else statement.body
        for dead in never:
            found |= {id(node) for node in ast.walk(dead)}
    blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
    blocks += [part.body for part in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]]
    return blocks


def messages(function: ast.AST) -> set[int]:
    """``id`` of each text that is only the message of an exception raised or asserted: graders compare types alone."""
    found: set[int] = set()
    for node in ast.walk(function):
        said: list[ast.expr] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            said = node.exc.args
        elif isinstance(node, ast.Assert) and node.msg is not None:
            said = [node.msg]
        found |= {id(part) for part in said if is_literal_text(part)}
    return found


def is_literal_text(node: ast.expr) -> bool:
    """A text in the source, formatted or not."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def never_read(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """``id`` of each simple statement ``name = literal`` whose name nothing in the function reads."""
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.Global | ast.Nonlocal) for node in nodes) or _looks_at_itself(nodes):
        return set()
    read = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    read |= {node.target.id for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    dead: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if len(names) == len(node.targets) and not read & set(names):
                dead |= {id(node), id(node.value)}
    return dead


def _looks_at_itself(nodes: list[ast.AST]) -> bool:
    """Whether the function may read its names otherwise than by writing them."""
    reflective = {"locals", "vars", "eval", "exec", "dir", "inspect"}
    return any(isinstance(node, ast.Name) and node.id in reflective for node in nodes) or any(
        isinstance(node, ast.ClassDef) for node in nodes
    )
