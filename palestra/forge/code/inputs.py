"""Make argument lists for a function: its examples' own, then new ones of the same shapes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from palestra.forge.code.examples import Example, literal
from palestra.forge.code.find import Function
from palestra.forge.code.shapes import Shapes
from palestra.verify.inside.literals import show

T = TypeVar("T")
FIRST_TRIES, TRIES_PER_CALL = 1000, 8
_ANNOTATED: dict[str, tuple[Any, ...]] = {
    "str": ("device_type", "some words", "Item"),
    "int": (3, 12, 250),
    "float": (0.5, 12.25),
    "bool": (True,),
    "list": ([1, 2, 3], ["a", "b"]),
    "tuple": ((1, 2, 3),),
    "dict": ({"a": 1, "b": 2},),
    "Iterable": ([1, 2, 3], "abc"),
    "Sequence": ([1, 2, 3], "abc"),
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the source says of a function's parameters. ``defaults`` holds literal defaults only."""

    positional: tuple[str, ...]
    required: int
    variadic: bool
    keyword_only: tuple[str, ...]
    needed_keywords: tuple[str, ...]
    defaults: Mapping[str, Any]
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, node: ast.FunctionDef) -> Parameters:
        spec = node.args
        plain = [*spec.posonlyargs, *spec.args]
        defaulted = dict(zip([a.arg for a in plain][len(plain) - len(spec.defaults) :], spec.defaults, strict=True))
        keywords = {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)}
        defaults = {}
        for name, default in {**defaulted, **keywords}.items():
            if default is not None:
                try:
                    defaults[name] = literal(default, {})
                except ValueError:
                    continue  # a default that is an object: the parameter is left out of calls
        annotations = {a.arg: ast.unparse(a.annotation) for a in [*plain, *spec.kwonlyargs] if a.annotation}
        needed = tuple(name for name, default in keywords.items() if default is None)
        names = tuple(a.arg for a in plain)
        required = len(plain) - len(spec.defaults)
        return cls(names, required, spec.vararg is not None, tuple(keywords), needed, defaults, annotations)

    def name_at(self, place: int) -> str:
        return self.positional[place] if place < len(self.positional) else "*"


@dataclass(frozen=True, slots=True)
class Plan:
    """What calls of one function are made from: whole examples, and values seen for parameters of the same name.

    documented  whether the examples are its docstring's own; else they stand in for the lack of any"""

    function: Function
    parameters: Parameters
    examples: tuple[Example, ...]
    seen: Mapping[str, tuple[Any, ...]]
    near: tuple[str, ...]
    documented: bool

    def calls(self, seed: int, prompt_bytes: int, prefix: int) -> Iterator[str]:
        """Argument lists as source text, each once, the examples' own first; ends where new ones are hard to find.

        prefix  bytes of the prompt that are not arguments: longer lists than prompt_bytes − prefix are left out"""
        rng = Random(f"{seed}:{self.function.symbol}")
        room = prompt_bytes - prefix
        templates = _fitting(self.examples, room, render) or self.examples
        seen = {name: _fitting(self._akin(name, values), room, show) for name, values in self.seen.items()}
        shapes = Shapes(rng, self.near, is_sorted="sorted" in self.function.doc.lower())
        known: set[str] = set()
        for example in self.examples:
            text = render(example)
            if _size(text) <= room and text not in known:
                known.add(text)
                yield text
        tries = 0
        while tries < FIRST_TRIES + TRIES_PER_CALL * len(known):
            tries += 1
            text = render(self._vary(rng.choice(templates), seen, rng, shapes))
            if text in known or _size(text) > room:
                continue
            known.add(text)
            yield text

    def example_calls(self) -> frozenset[str]:
        """The argument lists of the docstring's examples, as ``calls`` writes them."""
        return frozenset(render(example) for example in self.examples) if self.documented else frozenset()

    def _akin(self, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Those of other functions' ``values`` for a parameter of this name that may mean the same here: where this
        function's own are numbers, of their type, and not ten times as large."""
        places = [at for at, own in enumerate(self.parameters.positional) if own == name]
        own = [example.args[at] for example in self.examples for at in places if at < len(example.args)]
        if not own or not all(isinstance(value, (int, float)) for value in own):
            return values
        most = 10 * max(10, *map(abs, own))
        return tuple(value for value in values if type(value) is type(own[0]) and abs(value) <= most)

    def _vary(self, template: Example, seen: Mapping[str, tuple[Any, ...]], rng: Random, shapes: Shapes) -> Example:
        places = list(template.args)
        if self.parameters.variadic and len(places) > len(self.parameters.positional):
            fixed = len(self.parameters.positional)
            free = places[fixed:]
            places = places[:fixed] + [rng.choice(free) for _ in range(max(1, len(free) + rng.choice((-1, 0, 0, 1))))]
        for place in range(len(places)):
            others = seen.get(self.parameters.name_at(place), ())
            if others and rng.random() < 0.25:
                places[place] = rng.choice(others)
        keywords = dict(template.kwargs)
        for name, default in self.parameters.defaults.items():
            given = name in self.parameters.positional[: len(places)]
            if not given and name not in keywords and default is not None and rng.random() < 0.1:
                keywords[name] = default
        made = Example(tuple(shapes.like(v) for v in places), {key: shapes.like(v) for key, v in keywords.items()})
        return relate(Example(tuple(places), keywords), made, rng)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _fitting(values: Sequence[T], room: int, text: Callable[[T], str]) -> tuple[T, ...]:
    """Those not much longer than what is wanted: new values are about as long as their template."""
    return tuple(value for value in values if _size(text(value)) <= 1.5 * room)


def render(example: Example) -> str:
    """Arguments as source text: ``'a', 2, key=True``."""
    return ", ".join([*(show(v) for v in example.args), *(f"{key}={show(v)}" for key, v in example.kwargs.items())])


def relate(template: Example, made: Example, rng: Random) -> Example:
    """Keep what ties arguments together: where the template's argument is a key, a list of keys, or a path of keys of
    another argument, so (five times in six) is the new one."""
    args = list(made.args)
    for place, value in enumerate(template.args):
        for other, container in enumerate(template.args):
            if other == place or not isinstance(container, (dict, list)) or rng.random() < 1 / 6:
                continue
            keys = _keys(made.args[other])
            if not keys:
                continue
            if isinstance(value, (str, int)) and value in _keys(container):
                args[place] = rng.choice(keys)
            elif (
                isinstance(value, list)
                and value
                and all(isinstance(item, str) and item in _keys(container) for item in value)
            ):
                args[place] = [rng.choice(keys) for _ in value]
            elif isinstance(value, list) and len(value) > 1 and _is_path(value, container):
                args[place] = _path(made.args[other], rng)
    return Example(tuple(args), made.kwargs)


def _keys(container: Any) -> Sequence[Any]:
    """Keys of a dict, or field names of a list of records."""
    if isinstance(container, dict):
        return list(container)
    if isinstance(container, list) and container and all(isinstance(item, dict) for item in container):
        return list(container[0])
    return ()


def _is_path(path: list[Any], container: Any) -> bool:
    for key in path:
        try:
            container = container[key]
        except (KeyError, IndexError, TypeError):
            return False
    return True


def _path(container: Any, rng: Random) -> list[Any]:
    path: list[Any] = []
    while isinstance(container, (dict, list)) and container and (not path or rng.random() < 0.8):
        path.append(rng.choice(list(container)) if isinstance(container, dict) else rng.randrange(len(container)))
        container = container[path[-1]]
    return path


def from_annotations(parameters: Parameters, seen: Mapping[str, tuple[Any, ...]]) -> tuple[Example, ...]:
    """Templates for a function without example calls: each required parameter from values that parameters of its name
    have elsewhere in the package, else from its annotation. Empty where one parameter has neither."""
    columns: list[tuple[Any, ...]] = []
    for name in parameters.positional[: parameters.required]:
        annotated = parameters.annotations.get(name, "")
        base = annotated.rpartition(".")[2].partition("[")[0]
        values = seen.get(name, ()) or _ANNOTATED.get(base, ())
        if not values:
            return ()
        columns.append(values)
    if not columns or parameters.needed_keywords:
        return ()
    most = max(len(column) for column in columns)
    return tuple(Example(tuple(column[row % len(column)] for column in columns)) for row in range(most))
