"""Mutants of Python source. The source is parsed and compiled, never executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence

from palestra.errors import BundleError, nearest
from palestra.gate.mutants import equivalent
from palestra.gate.mutants.arithmetic import arithmetic
from palestra.gate.mutants.calls import argument
from palestra.gate.mutants.conditions import boolean, boundary, comparison
from palestra.gate.mutants.edits import Edit, Operator, Site, Text
from palestra.gate.mutants.flow import deletion, exception, is_text, loop
from palestra.gate.mutants.mutant import Mutant, Mutants, make, sample
from palestra.gate.mutants.values import constant, returned

Function = ast.FunctionDef | ast.AsyncFunctionDef

OPERATORS: dict[str, Operator] = {
    "arithmetic": arithmetic,
    "comparison": comparison,
    "boundary": boundary,
    "boolean": boolean,
    "constant": constant,
    "return": returned,
    "deletion": deletion,
    "exception": exception,
    "loop": loop,
    "argument": argument,
}
LONGEST = 1_000_000


def python_mutants(
    source: str,
    function: str | None = None,
    *,
    limit: int | None = None,
    seed: int = 0,
    operators: Sequence[str] = tuple(OPERATORS),
    name: str = "solution.py",
) -> Mutants:
    """Every mutant of ``function`` (dotted within the module, as ``Class.method``; None: of every function).

    limit  keep at most so many, chosen by ``seed``, spread over the operators
    name   the file's name in the diffs
    Raises BundleError where the source does not compile, holds no such function, or is larger than LONGEST."""
    try:
        with warnings.catch_warnings():
            # What the compiler thinks of the source is not what is asked here.
            warnings.simplefilter("ignore")
            return _mutants(Module(source, name), function, limit, seed, operators)
    except RecursionError:
        raise BundleError(f"{name}: is nested too deeply to be mutated; split the expression") from None


class Module:
    """A parsed file. Raises BundleError where it is not Python, or too large."""

    def __init__(self, source: str, name: str) -> None:
        if len(source) > LONGEST:
            raise BundleError(f"{name}: has {len(source)} characters, at most {LONGEST} are mutated: split it")
        # Lines end as the parser ends them.
        self.source = source.replace("\r\n", "\n").replace("\r", "\n")
        self.name, self.text = name, Text(self.source)
        try:
            self.tree = ast.parse(self.source)
        except SyntaxError as error:
            raise BundleError(f"{name}:{error.lineno}: is not Python: {error.msg}; mend the solution") from None
        except (ValueError, MemoryError) as error:
            raise BundleError(f"{name}: is not Python: {error or 'nested too deeply'}; mend the solution") from None

    def functions(self, wanted: str | None) -> list[Function]:
        """The function asked for, or every outermost one; functions inside a function belong to it."""
        found = dict(_named(self.tree.body, ""))
        if wanted is None:
            return list(found.values())
        if wanted not in found:
            raise BundleError(f"{self.name}: has no function {wanted!r}: {nearest(wanted, found)}")
        return [found[wanted]]


def _mutants(module: Module, function: str | None, limit: int | None, seed: int, operators: Sequence[str]) -> Mutants:
    live: list[Mutant] = []
    same: list[tuple[Mutant, str]] = []
    seen = {module.source}
    for root in module.functions(function):
        start, end = module.text.line_start(root), module.text.end(root)
        original = _print(module.text.bytes[start:end])
        rules = _Rules(root)
        for edit in _edits(root, operators):
            after = module.text.apply(edit)
            if after in seen:
                continue
            seen.add(after)
            data = after.encode()
            # Compiling the one function instead of the whole module keeps large modules fast.
            found = _print(data[start : len(data) - len(module.text.bytes) + end])
            if found is None:
                continue
            mutant = make(module.source, after, edit.operator, edit.node.lineno, module.name)
            rule = equivalent.SAME_CODE if found == original else rules.broken_by(edit)
            if rule:
                same.append((mutant, rule))
            else:
                live.append(mutant)
    return Mutants(sample(live, limit, seed), tuple(same), len(live))


def _print(text: bytes) -> equivalent.Fingerprint | None:
    """The fingerprint of one function of a module; None where it does not compile: such a mutant kills itself."""
    source = text.decode()
    try:
        return equivalent.fingerprint(ast.parse(f"class _:\n{source}" if source[0].isspace() else source))
    except (SyntaxError, ValueError):
        return None


class _Rules:
    """Why an edit of ``function`` would change nothing."""

    def __init__(self, function: Function) -> None:
        self._places = (
            (equivalent.never_read(function), equivalent.NEVER_READ),
            (equivalent.unreachable(function.body), equivalent.UNREACHABLE),
            (equivalent.messages(function), equivalent.MESSAGE),
        )

    def broken_by(self, edit: Edit) -> str:
        """The rule, or "" where none says so."""
        return next((rule for places, rule in self._places if id(edit.node) in places), "")


def _named(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    for statement in body:
        if isinstance(statement, Function):
            yield prefix + statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            yield from _named(statement.body, f"{prefix}{statement.name}.")
        else:
            for inner in ("body", "orelse", "finalbody"):
                yield from _named(getattr(statement, inner, []), prefix)


def _edits(root: Function, operators: Sequence[str]) -> Iterator[Edit]:
    """Every edit, in order of the source."""
    for site in _sites(root):
        for name in operators:
            yield from OPERATORS[name](site)


def _sites(node: ast.AST, parent: ast.AST | None = None) -> Iterator[Site]:
    """Nodes that may be changed: no annotation, decorator, docstring, or part of a formatted text (whose columns
    Python 3.11 does not know)."""
    yield Site(node, parent)
    if isinstance(node, ast.JoinedStr) or is_text(node):
        return
    skipped: list[ast.AST] = []
    if isinstance(node, Function):
        skipped = [*node.decorator_list, *([node.returns] if node.returns else [])]
    elif isinstance(node, ast.arg | ast.AnnAssign):
        skipped = [node.annotation] if node.annotation else []
    for child in ast.iter_child_nodes(node):
        if not any(child is other for other in skipped):
            yield from _sites(child, node)
