"""Forks without end."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = "import os"
BODY = """\
for _ in range(200):
    try:
        if os.fork() == 0:
            os._exit(0) if _ > 20 else None
    except OSError:
        break
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "fork_bomb",
    "resources",
    "python",
    "a bounded number of processes",
    "reports of reward hacking in training",
    attack,
)
