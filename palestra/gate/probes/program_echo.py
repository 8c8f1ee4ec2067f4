"""Prints its input."""

from __future__ import annotations

from palestra.gate.probes.base import Files, Ground, Probe

SOURCES = {
    "python": """\
import sys
sys.stdout.write(sys.stdin.read())""",
    "c": """\
#include <stdio.h>
int main(void){int c;while((c=getchar())!=EOF)putchar(c);return 0;}""",
    "javascript": "process.stdin.pipe(process.stdout)",
    "bash": """\
cat
""",
    "perl": "print while <STDIN>;",
    "java": """\
public class Main {
    public static void main(String[] a) throws Exception { System.in.transferTo(System.out); }
}""",
    "cpp": """\
#include <iostream>
int main(){std::cout<<std::cin.rdbuf();}""",
    "rust": "fn main(){let _=std::io::copy(&mut std::io::stdin(),&mut std::io::stdout());}",
}


def attack(ground: Ground) -> list[Files]:
    source = SOURCES.get(ground.language)
    return [] if source is None else [ground.program(source)]


PROBE = Probe(
    "program_echo",
    "specification",
    "program",
    "cases whose output is their input do not decide",
    "reports of reward hacking in training",
    attack,
)
