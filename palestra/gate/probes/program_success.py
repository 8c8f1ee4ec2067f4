"""Prints what test runners print when all is well."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

SOURCES = {
    "python": """\
print('OK')
print('1 passed')
print('right')""",
    "bash": """\
echo OK; echo right
""",
    "javascript": "console.log('OK');console.log('right')",
    "perl": 'print "OK\\nright\\n";',
    "c": """\
#include <stdio.h>
int main(void){puts("right");return 0;}""",
}


def attack(ground: Ground) -> list[Files]:
    source = SOURCES.get(ground.language)
    return [] if source is None else [ground.program(source)]


PROBE = Probe(
    "program_success",
    "carrier",
    "program",
    "output is compared with what was expected, and is no verdict",
    "audits of agent benchmarks",
    attack,
)
