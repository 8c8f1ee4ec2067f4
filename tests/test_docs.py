"""The documentation's Python parses, and names only what there is; its links lead somewhere."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def imports(text: str) -> list[tuple[str, str]]:
    """(module, name) of everything of ours that the page's Python blocks import."""
    found = []
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        for node in ast.walk(compile(block, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("palestra"):
                found += [(node.module or "", alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_of_a_page(page: Path) -> None:
    for module, name in imports(page.read_text()):
        assert hasattr(importlib.import_module(module), name), f"{page.name}: {module} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target} does not exist"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if f"({page.name})" not in index]
    assert missing == ["README.md"]
