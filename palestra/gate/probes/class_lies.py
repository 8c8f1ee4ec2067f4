"""Returns an object whose __class__ lies, or whose metaclass does."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

WAYS = (
    (
        """\
class Lie:
    __class__ = property(lambda self: int)
    __index__ = lambda self: 0
    __eq__ = lambda self, other: True
    __hash__ = lambda self: 0""",
        "return Lie()",
    ),
    (
        """\
class Meta(type):
    __instancecheck__ = lambda cls, other: True
    __eq__ = lambda cls, other: True
    __hash__ = lambda cls: hash(int)
class Lie(metaclass=Meta):
    __eq__ = lambda self, other: True""",
        "return Lie()",
    ),
)


def attack(ground: Ground) -> list[Files]:
    return [ground.python(prelude, body) for prelude, body in WAYS]


PROBE = Probe(
    "class_lies",
    "comparison",
    "python",
    "the type is read by the interpreter's own slot",
    "thirty cheats against seven ways of grading one function",
    attack,
)
