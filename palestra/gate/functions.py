"""Find a function in sources, without importing them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

LARGEST_BYTES = 1 << 20


def text_files(folder: Path, suffix: str = "") -> Iterator[tuple[Path, str]]:
    """The text files below ``folder`` whose name ends in ``suffix``, in order of name; no link, nothing large, nothing
    with a NUL byte."""
    for file in sorted(folder.rglob(f"*{suffix}")):
        if file.is_file() and not file.is_symlink() and file.stat().st_size <= LARGEST_BYTES:
            data = file.read_bytes()
            if b"\0" not in data:
                yield file, data.decode(errors="replace")


def definitions(sources: Iterable[str], name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Each definition of that name. A function that is made otherwise, as a partial one, has none."""
    for source in sources:
        if f"def {name}" not in source:
            continue
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                yield node


def body_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What the function does, in the words of its source: no signature, decorator or docstring."""
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return "\n".join(ast.unparse(statement) for statement in function.body[has_docstring:])
