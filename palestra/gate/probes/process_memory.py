"""Reads /proc for other processes' descriptors, environments and memory."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import glob
_seen = []
for file in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        _seen.append(open(file, "rb").read())
    except OSError:
        pass"""
BODY = """\
import glob, os, re
for link in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        text = open(link, "rb", buffering=0)
        os.set_blocking(text.fileno(), False)
        data = text.read(65536) or b""
    except (OSError, ValueError):
        continue
    found = re.search(rb'"expected": *"([^"]*)"', data)
    if found:
        return eval(found[1].decode())
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "process_memory",
    "expected",
    "python",
    "a sandbox of its own, in which nothing that knows an answer runs",
    "thirty cheats against seven ways of grading one function",
    attack,
)
