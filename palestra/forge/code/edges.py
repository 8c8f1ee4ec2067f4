"""Calls at the edges: a function's examples with values that its own text speaks of, and those beside them."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

from palestra.forge.code.examples import Example
from palestra.forge.code.inputs import Plan, render

ALWAYS: dict[type, tuple[Any, ...]] = {
    int: (0, 1, -1, 2, 3, 10, 100),
    float: (0.0, 1.0, -1.0, 0.5, 1.5, 1e9, -2.5, math.inf, math.nan),
    str: ("", " ", "nan", "inf", "a", "A", "ab", "Ab", "0", "a b", "é", "a-b_c.d"),
    list: ([],),
    tuple: ((),),
    dict: ({},),
    bytes: (b"", b"a"),
    bool: (True, False),
    set: (set(),),
}
LARGEST = 10**12


def edges(plan: Plan, module: str, most: int) -> list[str]:
    """Up to ``most`` argument lists: each example with one argument replaced by an edge of its type, or by a value that
    stands in the text of the function or in a table of its module, or with an option set to such a value."""
    values = values_of(plan, module)
    return list(islice(dict.fromkeys(render(example) for example in _varied(plan, values)), most))


def values_of(plan: Plan, module: str) -> dict[type, tuple[Any, ...]]:
    """type -> edges of it: those of any function, then those that the text names, and the numbers next to them."""
    own = [node.value for node in ast.walk(plan.function.node) if isinstance(node, ast.Constant)]
    tables = [
        node.value
        for statement in ast.parse(module).body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and len(str(node.value)) <= 24
    ]
    found = {kind: {repr(value): value for value in some} for kind, some in ALWAYS.items()}
    for value in [*own, *tables[:200]]:
        if type(value) is int and abs(value) < LARGEST:
            found[int] |= _by_text(value, value + 1, value - 1, -value, value + 100, 10 * value + 1)
        elif type(value) is str and 0 < len(value) <= 24 and value.isprintable():
            found[str] |= _by_text(value, value.upper(), f"{value}s", f"a{value}b")
        elif type(value) is float:
            found[float] |= _by_text(value, -value, value / 2)
    return {kind: tuple(some.values()) for kind, some in found.items()}


def _by_text(*values: Any) -> dict[str, Any]:
    """Keyed by ``repr``: 0.0 and -0.0 are different edges, and NaN is one."""
    return {repr(value): value for value in values}


def _varied(plan: Plan, values: dict[type, tuple[Any, ...]]) -> Iterator[Example]:
    rounds = max((len(some) for some in values.values()), default=0)
    for number in range(rounds):
        for example in plan.examples[:4]:
            for place, value in enumerate(example.args):
                options = values.get(type(value), ())
                if number < len(options):
                    args = (*example.args[:place], options[number], *example.args[place + 1 :])
                    yield Example(args, example.kwargs)
                    yield from _switched(plan, Example(args, example.kwargs))
            if number == 0:
                yield from _with_none(example)
            for name, default in plan.parameters.defaults.items():
                options = values.get(type(default), ())
                given = name in plan.parameters.positional[: len(example.args)]
                if not given and number < len(options):
                    yield Example(example.args, {**example.kwargs, name: options[number]})
                if not given and default is None and number < len(values[int]):
                    yield Example(example.args, {**example.kwargs, name: values[int][number]})


def _with_none(example: Example) -> Iterator[Example]:
    """The example with each argument left as None, which many functions give a meaning."""
    for place in range(len(example.args)):
        yield Example((*example.args[:place], None, *example.args[place + 1 :]), example.kwargs)


def _switched(plan: Plan, example: Example) -> Iterator[Example]:
    """The example with each option that is a switch set the other way."""
    for name, default in plan.parameters.defaults.items():
        if isinstance(default, bool) and name not in plan.parameters.positional[: len(example.args)]:
            yield Example(example.args, {**example.kwargs, name: not default})
