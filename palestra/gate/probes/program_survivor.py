"""Leaves a process that goes on printing and writing."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

SOURCES = {
    "python": """\
import os, time
if os.fork() == 0:
    os.setsid()
    for _ in range(100):
        print('0', flush=True)
        time.sleep(0.05)
""",
    "bash": """\
(setsid sh -c 'for i in 1 2 3 4 5 6 7 8 9; do echo 0; sleep 0.1; done' &)
""",
}


def attack(ground: Ground) -> list[Files]:
    source = SOURCES.get(ground.language)
    return [] if source is None else [ground.program(source)]


PROBE = Probe(
    "program_survivor",
    "carrier",
    "program",
    "the process tree is killed",
    "reports of reward hacking in training",
    attack,
)
