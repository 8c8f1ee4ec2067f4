"""Decide for every public function of a package whether calls of it can be made, and from what."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from palestra.forge.code.examples import Examples, read_examples
from palestra.forge.code.find import Function, Source
from palestra.forge.code.inputs import Parameters, Plan, from_annotations
from palestra.forge.code.words import harvest
from palestra.verify.inside.literals import show

CALLABLE_NAMES = {"func", "function", "callback", "predicate", "binop", "fn", "f", "key_func", "keyfunc", "pred"}


def plan_functions(source: Source) -> tuple[list[Plan], dict[str, str]]:
    """(plans, symbol -> why there is none) for the public functions of a package, both in order of symbol."""
    functions = source.functions()
    examples = {f.symbol: read_examples(f.doc, f.node.name) for f in functions}
    parameters = {f.symbol: Parameters.of(f.node) for f in functions}
    seen = _seen(functions, examples, parameters)
    texts = [text for text in source.texts.values() if len(text) < 200_000]
    package_words = _string_words(texts)
    plans: list[Plan] = []
    refused: dict[str, str] = {}
    for function in functions:
        read, spec = examples[function.symbol], parameters[function.symbol]
        calls = read.calls or (() if read.opaque else from_annotations(spec, seen))
        if calls and not _takes_function(spec):
            values = " ".join(text for call in read.calls for text in map(str, call.args))
            near = tuple(dict.fromkeys([*harvest(values), *package_words]))
            plans.append(Plan(function, spec, calls, seen, near, documented=bool(read.calls)))
        else:
            refused[function.symbol] = _why(function, read, spec)
    return plans, refused


def _takes_function(spec: Parameters) -> bool:
    return any(name in CALLABLE_NAMES for name in spec.positional[: spec.required])


def _why(function: Function, read: Examples, spec: Parameters) -> str:
    if read.opaque or _takes_function(spec):
        return "takes functions or other objects as arguments"
    if not function.doc:
        return "has no docstring, and no annotations or parameter names that tell what to give it"
    return "shows no example call, and no annotations or parameter names tell what to give it"


def _seen(
    functions: Iterable[Function], examples: Mapping[str, Examples], parameters: Mapping[str, Parameters]
) -> dict[str, tuple[Any, ...]]:
    """parameter name -> the distinct values that example calls anywhere in the package give to it."""
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    for function in functions:
        spec = parameters[function.symbol]
        for call in examples[function.symbol].calls:
            named = {spec.name_at(place): value for place, value in enumerate(call.args)} | call.kwargs
            for name, value in named.items():
                if name != "*":
                    values[name][show(value)] = value
    return {name: tuple(distinct.values()) for name, distinct in values.items()}


def _string_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Words of the package's own string constants, docstrings excluded: the words that its rules speak of."""
    words: dict[str, None] = {}
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= 24:
                words |= dict.fromkeys(harvest(node.value) if re.fullmatch(r"[A-Za-z ]+", node.value) else ())
    return tuple(words)[:200]
