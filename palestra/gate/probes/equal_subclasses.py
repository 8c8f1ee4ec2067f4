"""Returns subclasses of int, str, list and dict that equal everything."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
def _twin(kind):
    lies = {"__eq__": lambda s, o: True, "__ne__": lambda s, o: False, "__hash__": lambda s: 0}
    return type(kind.__name__, (kind,), lies)
Int, Str, List, Dict, Float = map(_twin, (int, str, list, dict, float))"""
BODY = "return Int(0)"


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "equal_subclasses",
    "comparison",
    "python",
    "types are exact: a subclass is no plain value",
    "thirty cheats against seven ways of grading one function",
    attack,
)
