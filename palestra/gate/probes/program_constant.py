"""Prints one fixed line, whatever is asked."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

SOURCES = {
    "python": "print('@')",
    "bash": "echo '@'",
    "javascript": "console.log('@')",
    "perl": 'print "@\\n";',
    "c": """\
#include <stdio.h>
int main(void){puts("@");return 0;}""",
    "java": 'public class Main { public static void main(String[] a) { System.out.println("@"); } }',
}
LINES = ("0", "1", "YES", "NO", "")


def attack(ground: Ground) -> list[Files]:
    source = SOURCES.get(ground.language)
    return [] if source is None else [ground.program(source.replace("@", line)) for line in LINES]


PROBE = Probe(
    "program_constant",
    "specification",
    "program",
    "a constant is right in few cases",
    "reports of reward hacking in training",
    attack,
)
