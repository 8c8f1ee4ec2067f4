"""Find the public functions of a package by reading its source, never importing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from palestra.forge.code.package import Package

DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Function:
    """A public function.

    symbol  its shortest public dotted name, package included: ``toolz.take``
    module  the module to import for that name; ``path`` is the rest of the name
    source  its own text, docstring included
    home    the module that defines it
    """

    symbol: str
    module: str
    node: ast.FunctionDef
    source: str
    home: str

    @property
    def path(self) -> str:
        return self.symbol[len(self.module) + 1 :]

    @property
    def doc(self) -> str:
        return ast.get_docstring(self.node) or ""


class Source:
    """Every module of a package, parsed once."""

    def __init__(self, package: Package) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.texts: dict[str, str] = {}
        self.files: dict[str, Path] = {}
        for name, file in package.modules():
            try:
                text = file.read_text(encoding="utf-8")
                self.trees[name] = ast.parse(text)
            except (SyntaxError, ValueError, OSError, RecursionError):
                continue  # a template, another version's file, no permission: nothing of it can be imported either
            self.texts[name], self.files[name] = text, file

    def functions(self) -> list[Function]:
        """The public functions by name, each once, under the shortest of its public names."""
        found: dict[tuple[str, str], Function] = {}
        for module in sorted(self.trees, key=lambda name: (name.count("."), name)):
            if any(part.startswith("_") for part in module.split(".")):
                continue
            for name, (home, node) in sorted(self.public(module).items()):
                if (home, node.name) not in found:
                    found[home, node.name] = Function(f"{module}.{name}", module, node, self._text(home, node), home)
        return sorted(found.values(), key=lambda function: function.symbol)

    def public(self, module: str, depth: int = 0) -> dict[str, tuple[str, ast.FunctionDef]]:
        """name -> (module that defines it, its definition) of the functions that ``module`` offers."""
        tree = self.trees.get(module)
        if tree is None or depth > DEEPEST:
            return {}
        offered: dict[str, tuple[str, ast.FunctionDef]] = {}
        for statement in _statements(tree.body):
            if isinstance(statement, ast.FunctionDef):
                offered[statement.name] = (module, statement)
            elif isinstance(statement, ast.ImportFrom):
                offered |= self._imported(module, statement, depth)
            elif isinstance(statement, (ast.ClassDef, ast.AsyncFunctionDef)):
                offered.pop(statement.name, None)
            elif isinstance(statement, ast.Assign):
                self._assigned(statement, offered)
        listed = declared(tree)
        own = {name: at for name, at in offered.items() if not name.startswith("_")}
        if listed is not None:
            return {name: at for name, at in offered.items() if name in listed}
        # Without __all__, a plain module offers what it defines; only a package's __init__ offers what it imports.
        is_init = self.files[module].name == "__init__.py"
        return {name: at for name, at in own.items() if is_init or at[0] == module}

    def _imported(self, module: str, statement: ast.ImportFrom, depth: int) -> dict[str, tuple[str, ast.FunctionDef]]:
        base = module.split(".")
        if statement.level:
            up = statement.level - (self.files[module].name == "__init__.py")
            base = base[: len(base) - up] if up else base
            target = ".".join([*base, *([statement.module] if statement.module else [])])
        else:
            target = statement.module or ""
        theirs = self._defined(target, depth + 1)
        if any(alias.name == "*" for alias in statement.names):
            return self.public(target, depth + 1)
        return {alias.asname or alias.name: theirs[alias.name] for alias in statement.names if alias.name in theirs}

    def _defined(self, module: str, depth: int) -> dict[str, tuple[str, ast.FunctionDef]]:
        """As ``public``, whatever the names: an explicit import may take a name that a star does not."""
        tree = self.trees.get(module)
        own = (
            {}
            if tree is None
            else {s.name: (module, s) for s in _statements(tree.body) if isinstance(s, ast.FunctionDef)}
        )
        return self.public(module, depth) | own

    def _assigned(self, statement: ast.Assign, offered: dict[str, tuple[str, ast.FunctionDef]]) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name) and target.id in offered:
                del offered[target.id]  # rebound: what stands behind the name is not known from the source

    def _text(self, module: str, node: ast.FunctionDef) -> str:
        return ast.get_source_segment(self.texts[module], node) or ""


def declared(tree: ast.Module) -> set[str] | None:
    """The names in ``__all__``, or None where there is none or it is not a plain list."""
    names: set[str] | None = None
    for statement in _statements(tree.body):
        if not isinstance(statement, (ast.Assign, ast.AugAssign)):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            try:
                names = (names or set()) | set(ast.literal_eval(statement.value))
            except (ValueError, TypeError):
                return names  # computed: what can be read of it is all that counts
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at module level, those inside if/try/with included."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))
        else:
            yield statement
