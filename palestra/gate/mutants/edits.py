"""Where a mutation can stand, and how it is written back: one span is replaced, all other text stays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Parent = ast.AST | None


@dataclass(frozen=True, slots=True)
class Site:
    """One node of the function, with the node above it."""

    node: ast.AST
    parent: Parent


@dataclass(frozen=True, slots=True)
class Edit:
    """Write ``text`` where ``node`` stands. ``after`` puts it behind the node instead, as a statement of its block."""

    operator: str
    node: ast.expr | ast.stmt
    text: str
    after: bool = False


Operator = Callable[[Site], Iterator[Edit]]

# An expression with one of these above it needs no brackets, whatever it is.
_LOOSE = (ast.Call, ast.List, ast.Set, ast.Dict, ast.keyword, ast.Slice)
_ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.Constant)


def swap(site: Site, operator: str, new: ast.expr) -> Edit:
    """Replace the expression of ``site`` by ``new``, in brackets where what stands around could tear it apart."""
    assert isinstance(site.node, ast.expr)
    text = ast.unparse(new)
    above = site.parent
    loose = not isinstance(above, ast.expr | ast.comprehension) or isinstance(above, _LOOSE)
    if isinstance(above, ast.Call) and above.func is site.node:
        loose = False
    if isinstance(new, ast.Constant):
        loose = loose or text[0] not in "-0123456789" or not isinstance(above, ast.Attribute | ast.BinOp | ast.UnaryOp)
        loose = loose or (text[0] != "-" and not isinstance(above, ast.Attribute))
    elif isinstance(new, _ATOMS):
        loose = True
    return Edit(operator, site.node, text if loose else f"({text})")


class Text:
    """A source whose nodes know their columns in UTF-8 bytes, as ``ast`` counts them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.bytes = source.encode()
        self._starts = [0]
        for line in self.bytes.split(b"\n")[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def line_start(self, node: ast.stmt) -> int:
        """Where the line of ``node`` begins, its indentation included."""
        return self._starts[node.lineno - 1]

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def apply(self, edit: Edit) -> str:
        """The source with ``edit`` made."""
        start, end = self.start(edit.node), self.end(edit.node)
        text = edit.text
        if edit.after:
            start = end
            compound = isinstance(edit.node, ast.stmt) and hasattr(edit.node, "body")
            text = f"\n{' ' * edit.node.col_offset}{text}" if compound else f"; {text}"
        elif text.startswith("(") and text.endswith(")") and self._in_brackets(start, end) and _whole(text[1:-1]):
            text = text[1:-1]
        return (self.bytes[:start] + text.encode() + self.bytes[end:]).decode()

    def _in_brackets(self, start: int, end: int) -> bool:
        return self.bytes[start - 1 : start] == b"(" and self.bytes[end : end + 1] == b")"


def _whole(text: str) -> bool:
    """Whether ``text``, without its outer brackets, is still one expression: "(a) + (b)" is not in brackets."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
