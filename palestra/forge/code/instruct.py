"""The words of a task, from what is known of its function. Nothing is invented; the same input gives the same words."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from palestra.forge.code.study import Study
from palestra.verify.function import Call

MOST_EXAMPLES = 8


def implement(made: Study, shown: Sequence[Call]) -> str:
    """Write the body of a function whose head and docstring stand in the file."""
    where = f"`/app/{made.file}`"
    asked = (
        f"The function `{made.name}` in {where} has lost its body. Write it again, so that the function does what its "
        "docstring says. The rest of the file is right and may be used; hand in the whole file."
    )
    shape = "```python\n" + head(made.source, made.name) + "\n```"
    return _page(f"# Write `{made.name}`", asked, shape, *_examples(made, shown), *_notes(made))


def repair(made: Study, symptom: Call, got: str, shown: Sequence[Call]) -> str:
    """Find a bug from one call that shows it."""
    return _page(
        f"# `{made.name}` is wrong",
        f"A user of `/app/{made.file}` reports:",
        f"> `{shown_call(made, symptom)}` {got}. I expected {wanted(symptom)}.",
        "Find the cause and mend it. Everything that works now must go on working; hand in the whole file.",
        *_examples(made, shown),
    )


def _page(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


def head(source: str, name: str) -> str:
    """The signature and docstring of a function, as they stand."""
    function = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef) and n.name == name][-1]
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    end = (first.end_lineno if has_docstring else first.lineno - 1) or function.lineno
    lines = source.split("\n")[function.lineno - 1 : end]
    return "\n".join(lines).rstrip() + ("" if has_docstring else "\n    ...")


def shown_call(made: Study, call: Call) -> str:
    text = f"{made.name}({call.args})"
    return f"list({text})" if call.expected.startswith("iter(") else text


def wanted(call: Call) -> str:
    """What is expected of a call, in words or as a literal."""
    if call.expected.startswith("raises("):
        return f"it to raise `{call.expected[7:-1]}`"
    return f"`{literal(call.expected)}`"


def literal(expected: str) -> str:
    return expected[5:-1] if expected.startswith("iter(") else expected


def _examples(made: Study, shown: Sequence[Call]) -> list[str]:
    """Calls with what they give, those of the docstring left out where it stands beside them."""
    told = head(made.source, made.name).replace('"', "'")
    listed = [call for call in shown if call.args.replace('"', "'") not in told][:MOST_EXAMPLES]
    if not listed:
        return []
    lines = [f">>> {shown_call(made, call)}\n{_result(call)}" for call in listed]
    return ["Examples:\n\n```python\n" + "\n".join(lines) + "\n```"]


def _result(call: Call) -> str:
    if call.expected.startswith("raises("):
        return f"Traceback (most recent call last):\n    ...\n{call.expected[7:-1]}"
    return literal(call.expected)


def _notes(made: Study) -> list[str]:
    """What is graded that an example alone does not say."""
    expected = [call.expected for call in made.calls]
    notes = []
    if any(text.startswith("iter(") for text in expected):
        notes.append("It returns an iterator, not a list.")
    raised = sorted({text[7:-1] for text in expected if text.startswith("raises(")})
    if raised:
        notes.append(f"It raises {', '.join(f'`{name}`' for name in raised)} where the docstring says so.")
    if any(re.match(r"[\[({]", text) for text in expected):
        notes.append("The types of results count: a list is no tuple.")
    return [" ".join(notes)] if notes else []
