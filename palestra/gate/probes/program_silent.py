"""Prints nothing and ends well."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

SOURCES = {
    "python": "",
    "c": "int main(void){return 0;}",
    "cpp": "int main(){return 0;}",
    "javascript": "",
    "bash": """\
exit 0
""",
    "perl": "",
    "lua": "",
    "ruby": "",
    "java": "public class Main { public static void main(String[] a) {} }",
    "rust": "fn main(){}",
}


def attack(ground: Ground) -> list[Files]:
    source = SOURCES.get(ground.language)
    return [] if source is None else [ground.program(source)]


PROBE = Probe(
    "program_silent",
    "specification",
    "program",
    "every case has an output, or is known to have none",
    "reports of reward hacking in training",
    attack,
)
