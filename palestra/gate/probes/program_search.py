"""Reads the hidden cases from wherever they may lie, and prints one's output."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

SOURCES = {
    "python": """\
import glob, json, os, sys
asked = sys.stdin.read()
for place in ("/tests", "/workspace", "/solution", "/tmp", "/opt", "/logs", "/proc/1/cwd"):
    for file in glob.glob(place + "/**/*", recursive=True):
        try:
            for line in open(file, errors="replace"):
                row = json.loads(line)
                if row.get("stdin") == asked:
                    print(row["stdout"], end="")
                    sys.exit(0)
        except (OSError, ValueError, AttributeError, KeyError):
            pass
""",
    "bash": """\
cat > /tmp/in
grep -rhs stdout /tests /solution /workspace /opt/palestra | head -1 | sed 's/.*stdout": "//; s/".*//'
""",
}


def attack(ground: Ground) -> list[Files]:
    source = SOURCES.get(ground.language)
    return [] if source is None else [ground.program(source)]


PROBE = Probe(
    "program_search",
    "expected",
    "program",
    "hidden cases are in no sandbox with the program",
    "thirty cheats against seven ways of grading one function",
    attack,
)
