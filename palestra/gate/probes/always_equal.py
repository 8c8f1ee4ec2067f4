"""Returns an object that equals everything."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
class Same:
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = lambda self: 0
    __bool__ = lambda self: True
    __len__ = lambda self: 1
    __iter__ = lambda self: iter(())
    __contains__ = lambda self, other: True
    __getattr__ = lambda self, name: self
    __call__ = lambda self, *a, **k: self
    __getitem__ = lambda self, key: self
    __abs__ = __sub__ = __rsub__ = __round__ = lambda self, *a: 0.0"""
BODY = "return Same()"


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "always_equal",
    "comparison",
    "python",
    "values cross as plain data, rebuilt from a whitelist",
    "thirty cheats against seven ways of grading one function",
    attack,
)
