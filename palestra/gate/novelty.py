"""How much of a bundle the rest of the set already has: MinHash over its instruction and its solution.

Two signatures of K hashes agree in a share of places that estimates the Jaccard similarity of the two sets of shingles
(A. Broder, 1997):

    J = |A ∩ B| / |A ∪ B|,   estimate = (places that agree) / K,   standard error = √(J·(1 − J) / K)

With K = 256 the standard error is at most 0.031, at J = 0.5; at J = 0.9 it is 0.019.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import eq
from pathlib import Path
from typing import Any

from palestra.envs.bundle import PredictFacts, read_facts
from palestra.errors import BundleError
from palestra.gate.functions import definitions, text_files
from palestra.gate.subject import Check

K = 256
_PRIME = (1 << 61) - 1
TEXT_WORDS = 3
"""Words in a shingle of text."""
CODE_TOKENS = 5
"""Nodes in a shingle of code."""
NOT_COMPARED = {"solve.sh"}
"""Files that every bundle of a kind has alike."""

Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """text  signature of the instruction;  code  signature of the solution's files; None where there is nothing."""

    name: str
    text: Signature | None
    code: Signature | None


def error_of(estimate: float, k: int = K) -> float:
    """The standard error of a similarity estimated from ``k`` places: √(J·(1 − J) / k)."""
    return sqrt(estimate * (1 - estimate) / k)


def _places() -> tuple[tuple[int, int], ...]:
    """K pairs (a, b) of the hash a·x + b mod p: the same on every machine, for ever."""
    numbers = [int.from_bytes(hashlib.sha256(f"minhash {n}".encode()).digest()[:8]) % _PRIME for n in range(2 * K)]
    return tuple(zip((n or 1 for n in numbers[:K]), numbers[K:], strict=True))


_PLACES = _places()


def minhash(shingles: Iterable[str]) -> Signature | None:
    """The signature of a set; None for the empty one, which is like no other."""
    hashes = {
        int.from_bytes(hashlib.blake2b(s.encode("utf-8", "surrogatepass"), digest_size=8).digest()) for s in shingles
    }
    if not hashes:
        return None
    return tuple(min((a * x + b) % _PRIME for x in hashes) for a, b in _PLACES)


def jaccard(one: Signature | None, other: Signature | None) -> float | None:
    """The estimate; None where either set is empty."""
    if one is None or other is None:
        return None
    alike: int = sum(map(eq, one, other))
    return alike / len(one)


def text_shingles(text: str) -> set[str]:
    """Runs of TEXT_WORDS words, without case, marks and numbers."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {" ".join(words[n : n + TEXT_WORDS]) for n in range(max(1, len(words) - TEXT_WORDS + 1))} if words else set()


def code_shingles(source: str) -> set[str]:
    """Runs of CODE_TOKENS nodes of the syntax tree, in which no local name, text, number or docstring counts; what is
    called, and every attribute, does. A source that is not Python goes by its words."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text_shingles(source)
    nodes = [word for statement in tree.body for word in _words(statement)]
    return (
        {" ".join(nodes[n : n + CODE_TOKENS]) for n in range(max(1, len(nodes) - CODE_TOKENS + 1))} if nodes else set()
    )


def _words(tree: ast.AST) -> Iterable[str]:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield _word(node)
        children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        stack += reversed(children)


def _word(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return f"Call:{name}"
        case ast.Attribute(attr=name):
            return f".{name}"
        case ast.Constant(value=value):
            return type(value).__name__
        case ast.Import() | ast.ImportFrom():
            return "Import"
        case _:
            return type(node).__name__


def fingerprint(name: str, instruction: str, sources: Sequence[str]) -> Fingerprint:
    code = {shingle for source in sources for shingle in code_shingles(source)}
    return Fingerprint(name, minhash(text_shingles(instruction)), minhash(code))


def fingerprint_of(path: Path, function: str | None = None) -> Fingerprint:
    """The fingerprint of the bundle at ``path``: of the one ``function`` of its source that it is about, where named,
    else of every file of its solution."""
    instruction = path / "instruction.md"
    text = instruction.read_text(encoding="utf-8", errors="replace") if instruction.is_file() else ""
    files = text_files(path / "solution")
    sources = [text for file, text in files if file.name not in NOT_COMPARED]
    if function is not None:
        sources = [ast.unparse(found) for found in definitions(sources, function)]
    return fingerprint(path.name, text, sources)


def nearest_of(one: Fingerprint, others: Sequence[Fingerprint]) -> Mapping[str, Any] | None:
    """The most alike of ``others``: its name, the estimate, its standard error; None where nothing can be compared.

    Code decides, and text only where either has no code: instructions of one forge are alike by their template."""
    alike: list[tuple[float, str]] = []
    for other in others:
        code = jaccard(one.code, other.code)
        value = jaccard(one.text, other.text) if code is None else code
        if value is not None:
            alike.append((value, other.name))
    if not alike:
        return None
    value, name = max(alike)
    return {"nearest": name, "jaccard": value, "error": round(error_of(value), 4), "places": K}


class Prints:
    """The fingerprints of a set of bundles, each made when it is first asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = sorted(paths, key=lambda path: (path.name, str(path)))
        self._made: dict[Path, tuple[str, Fingerprint] | None] = {}

    def add(self, path: Path) -> None:
        """One more of the set; ``path`` comes after those that are in it."""
        self._paths.append(path)

    def of(self, path: Path) -> tuple[str, Fingerprint] | None:
        """(kind, fingerprint) of one bundle; None where it cannot be read."""
        if path not in self._made:
            try:
                facts = read_facts(path)
            except BundleError:
                self._made[path] = None
                return None
            function = facts.symbol.rpartition(".")[2] if isinstance(facts, PredictFacts) else None
            self._made[path] = (facts.kind, fingerprint_of(path, function))
        return self._made[path]

    def before(self, path: Path) -> list[Fingerprint]:
        """Those of the same kind that come before ``path`` by name: of two that are alike, the later is refused."""
        own = self.of(path)
        earlier = self._paths[: self._paths.index(path)] if path in self._paths else self._paths
        found = [self.of(other) for other in earlier]
        return [one[1] for one in found if one is not None and own is not None and one[0] == own[0]]


def novelty(path: Path, prints: Prints, most: float) -> Check:
    """The bundle is no near copy of an earlier one of its kind: by its code, or by its text where it has none."""
    found = prints.of(path)
    if found is None:
        return Check("novelty", True, "has nothing that can be compared")
    others = prints.before(path)
    nearest = nearest_of(found[1], others)
    if nearest is None:
        return Check("novelty", True, f"unlike the {len(others)} earlier ones of its kind")
    told = f"{nearest['nearest']} (estimated Jaccard {nearest['jaccard']:.2f}, at most {most:g})"
    if nearest["jaccard"] > most:
        return Check("novelty", False, f"is a near copy of {told}: leave one of them out", facts=nearest)
    return Check("novelty", True, f"of {len(others)} earlier ones the nearest is {told}", facts=nearest)
