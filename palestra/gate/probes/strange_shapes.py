"""Returns a list that holds itself, a generator without an end, a list too deep."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

WAYS = (
    (
        "",
        """\
loop = []
loop.append(loop)
return loop""",
    ),
    ("import itertools", "return itertools.repeat(0)"),
    (
        "",
        """\
deep = []
for _ in range(100_000):
    deep = [deep]
return deep""",
    ),
)


def attack(ground: Ground) -> list[Files]:
    return [ground.python(prelude, body) for prelude, body in WAYS]


PROBE = Probe(
    "strange_shapes",
    "comparison",
    "python",
    "bounded encoding",
    "thirty cheats against seven ways of grading one function",
    attack,
)
