"""Each part imports only from those above it; imports for type checkers alone do not count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "palestra"
ORDER = (
    "types",
    "errors",
    "config",
    "files",
    "intervals",
    "algos",
    "models",
    "sandboxes",
    "verify",
    "envs",
    "store",
    "rollouts",
    "gate",
    "forge",
    "curricula",
    "train",
    "evals",
    "quickstart",
    "cli",
)


def imported(node: ast.AST) -> Iterator[str]:
    """Parts of ours that ``node`` imports, itself or within."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    names = []
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    yield from (name.split(".")[1] for name in names if name.startswith("palestra.") and name.count("."))
    for child in ast.iter_child_nodes(node):
        yield from imported(child)


def test_parts_are_listed() -> None:
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert parts - {"__init__"} == set(ORDER)


def test_nothing_imports_from_below() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imported(ast.parse(path.read_text())):
            if other in ORDER and ORDER.index(other) > ORDER.index(part):
                wrong.append(f"{path.relative_to(PACKAGE)} imports palestra.{other}")
    assert wrong == []
