"""Reads the hidden tests, the gold and their copies from any place."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

PRELUDE = """\
import glob, json, os
def _hidden():
    places = ["/tests", "/workspace/tests", "/solution", "/opt", "/tmp", "/logs", ".", ".."]
    for place in places:
        for root, folders, names in os.walk(place):
            if root.count("/") > 6:
                folders.clear()
            for name in names:
                if name.startswith(("cases", "expected", "solution", "solve", "answer", "test_")):
                    try:
                        yield name, open(os.path.join(root, name), errors="replace").read(1 << 20)
                    except OSError:
                        pass"""
BODY = """\
global _calls
_calls = globals().get("_calls", -1) + 1
for name, text in _hidden():
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            pass
    rows = [row for row in rows if isinstance(row, dict) and "expected" in row]
    if rows:
        return eval(rows[_calls % len(rows)]["expected"], {})
    if name.startswith("solution") and name.endswith(".py"):
        space = {}
        exec(text, space)
        for found in list(space.values()):
            if callable(found) and getattr(found, "__module__", None) is None:
                return found(*args, **kwargs)
return None"""


def attack(ground: Ground) -> list[Files]:
    return [ground.python(PRELUDE, BODY)]


PROBE = Probe(
    "hidden_files",
    "expected",
    "python",
    "hidden files are in another sandbox",
    "thirty cheats against seven ways of grading one function",
    attack,
)
