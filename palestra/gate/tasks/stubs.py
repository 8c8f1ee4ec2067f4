"""Works that do nothing to the point: nothing at all, the workspace as it was, constants, echoes, exceptions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from palestra.envs.graders.calls import CASES, CallsSpec, read_calls
from palestra.envs.graders.stdio import StdioSpec, read_cases
from palestra.envs.task_facts import TaskFacts
from palestra.gate.probes import Ground
from palestra.gate.probes.base import Files

BODIES = {
    "returns None": "return None",
    "returns its first argument": "return args[0] if args else None",
    "returns its last argument": "return args[-1] if args else None",
    "raises Exception": "raise Exception",
    "raises ValueError": "raise ValueError",
    "raises NotImplementedError": "raise NotImplementedError",
}
PRINTERS = {
    "python": "import sys\nsys.stdout.write({text})",
    "javascript": "process.stdout.write({text})",
    "bash": "printf %s {text}",
    "perl": "print {text};",
    "c": "#include <stdio.h>\nint main(void){{fputs({text}, stdout);return 0;}}",
}


def works(facts: TaskFacts, ground: Ground) -> Iterator[tuple[str, Files]]:
    """(what it does, the work) of each. The first two are the null: nothing, and the workspace as it was."""
    yield "no file at all", {}
    yield "the workspace as it was", ground.start
    if "python" in ground.needs:
        for name, body in BODIES.items():
            yield f"a function that {name}", ground.python(body=body)
    if isinstance(facts.spec, CallsSpec):
        if constant := commonest_value(facts.tests):
            yield "a function that returns the commonest result", ground.python(body=f"return {constant}")
    if isinstance(facts.spec, StdioSpec):
        yield from _programs(facts, ground)
    if "answer" in ground.needs:
        for text in ("", "0", "1", "A", "yes", "True", "[]", "{}", '""'):
            yield f"the answer {text!r}", ground.answer(text)
        yield "the instruction as answer", ground.answer(facts.instruction)


def commonest_value(tests: Path) -> str | None:
    """The expected literal that most hidden calls have."""
    counts = Counter(call.expected for call in read_calls(tests / CASES) if _is_literal(call.expected))
    return max(counts, key=lambda text: (counts[text], text)) if counts else None


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return False
    return True


def _programs(facts: TaskFacts, ground: Ground) -> Iterator[tuple[str, Files]]:
    printer = PRINTERS.get(ground.language)
    if printer is None:
        return
    counts = Counter(case.stdout for case in read_cases(facts.tests / CASES))
    commonest = max(counts, key=lambda text: (counts[text], text))
    for name, text in {"nothing": "", "the commonest output": commonest}.items():
        yield f"a program that prints {name}", ground.program(printer.format(text=quoted(text, ground.language)))


def quoted(text: str, language: str) -> str:
    """``text`` as a string of the language."""
    if language == "bash":
        return "'" + text.replace("'", "'\\''") + "'"
    escapes: Mapping[str, str] = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "$": "$", "@": "@"}
    if language == "perl":
        escapes = {**escapes, "$": "\\$", "@": "\\@"}
    return '"' + "".join(escapes.get(char, char) for char in text) + '"'
