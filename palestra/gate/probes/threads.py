"""Leaves threads that go on, and never ends."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import threading, time
threading.Thread(target=time.sleep, args=(600,)).start()"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE)]


PROBE = Probe(
    "threads",
    "resources",
    "python",
    "time-outs, and the process tree is killed",
    "thirty cheats against seven ways of grading one function",
    attack,
)
