"""Checks that read and execute nothing: cheap, so they come first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from palestra.envs.bundle import FEWEST_CASES
from palestra.envs.splits import split_of
from palestra.errors import BundleError
from palestra.gate.config import GateConfig
from palestra.gate.leaks import scan, visible_of
from palestra.gate.subject import Check, Subject
from palestra.verify.inside.literals import NotPlain, same

LEAK_LETTERS = 6


def files(subject: Subject, config: GateConfig) -> Check:
    """Every case is a call of the function with a readable literal for its result, and there are enough of them."""
    try:
        count = len(subject.outcomes)
        calls = len({case.call for case in subject.cases})
        if len(subject.arguments) != calls:
            return Check(
                "files", False, f"{len(subject.arguments) - calls} calls stand twice in the cases: remove them"
            )
    except (NotPlain, BundleError) as error:
        return Check("files", False, f"a case cannot be read: {error}; forge the bundle again")
    stated = sum(subject.facts.splits.values())
    if stated != count:
        return Check("files", False, f"task.toml states {stated} cases, the file has {count}: forge the bundle again")
    if count < FEWEST_CASES:
        return Check("files", False, f"has {count} cases, at least {FEWEST_CASES} are needed: forge with more --cases")
    if not (subject.path / "solution" / "source").is_dir():
        return Check("files", False, "has no solution/source, so that the reference cannot be run: forge it again")
    return Check("files", True, f"{count} distinct cases, every literal readable", facts={"cases": count})


def splits(subject: Subject, config: GateConfig) -> Check:
    """Each case is in the split that its text decides; so no call can be in two."""
    wrong = [case for case in subject.cases if split_of(case.call) != case.split]
    if wrong:
        return Check(
            "splits",
            False,
            f"{len(wrong)} cases are not in the split that their text decides, as {wrong[0].call} in {wrong[0].split}: "
            "assign splits with palestra.envs.splits.split_of",
        )
    counts = Counter(case.split for case in subject.cases)
    empty = [split for split in subject.facts.splits if not counts[split]]
    if empty:
        return Check("splits", False, f"split {empty[0]} has no case: forge with more --cases")
    return Check("splits", True, "disjoint: " + ", ".join(f"{split} {counts[split]}" for split in subject.facts.splits))


def leak(subject: Subject, config: GateConfig) -> Check:
    """What the agent gets (instruction, environment/) shows one training call at most, no answer to it, and neither the
    function's source, a hidden file, nor a way to fetch them.

    An answer of fewer than LEAK_LETTERS letters is sought in the instruction alone: "3" stands in any Dockerfile."""
    visible = visible_of(subject.path)
    texts = {seen.name: (seen.data or b"").decode(errors="replace") for seen in visible}
    shown = [case for case in subject.cases if any(case.call in text for text in texts.values())]
    hidden = [case for case in shown if case.split != "train"]
    if hidden or len(shown) > 1:
        places = ", ".join(_place(case.call, texts) for case in (hidden or shown)[:3])
        told = (
            f"shows the agent {len(shown)} of its calls, {len(hidden)} of them hidden ones ({places}): "
            "show one training call"
        )
        return Check("leak", False, told)
    for case in shown:
        for name, text in texts.items():
            if (name == "instruction.md" or len(case.expected) >= LEAK_LETTERS) and (
                line := _stands_in(case.expected, case.call, text)
            ):
                return Check("leak", False, f"the answer of the call shown stands in {name}:{line}: take it out")
    found = scan(visible, subject.hidden)
    if found:
        told = f"{found[0].where}: {found[0].told}"
        return Check("leak", False, told, facts={"leaks": [leak.plain() for leak in found[:20]]})
    return Check("leak", True, f"{len(texts)} visible files show {len(shown)} training call and no answer")


def _place(call: str, texts: Mapping[str, str]) -> str:
    """Where ``call`` stands, as file:line."""
    name, text = next((name, text) for name, text in texts.items() if call in text)
    return f"{name}:{_line(text, text.index(call))}"


def _stands_in(answer: str, call: str, text: str) -> int:
    """The line on which ``answer`` stands by itself, outside ``call``; 0 where it does not."""
    # As long as the call, so that places stay.
    found = re.search(rf"(?<![\w.]){re.escape(answer)}(?!\w)", text.replace(call, "\0" * len(call)))
    return _line(text, found.start()) if found else 0


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def constant(subject: Subject, config: GateConfig) -> Check:
    """The best fixed answer, over all cases."""
    texts = Counter(case.expected for case in subject.cases)
    best = max(texts, key=lambda text: (texts[text], text))
    value = subject.outcomes[next(i for i, case in enumerate(subject.cases) if case.expected == best)]
    share = sum(same(value, outcome) for outcome in subject.outcomes) / len(subject.cases)
    facts = {"answer": best, "share": share, "outcomes": len(texts)}
    if share > config.constant_most:
        return Check(
            "constant",
            False,
            f"the fixed answer {best} is right in {share:.1%} of the cases, at most {config.constant_most:.0%} may be: "
            "balance the outcomes",
            facts=facts,
        )
    return Check(
        "constant", True, f"best fixed answer {best} is right in {share:.1%}; {len(texts)} outcomes", facts=facts
    )


def echo(subject: Subject, config: GateConfig) -> Check:
    """Repeating the first argument, over all cases."""
    try:
        first = subject.first_arguments()
    except NotPlain as error:
        return Check("echo", False, f"an argument is no literal: {error}; forge the bundle again")
    share = sum(a == case.expected for a, case in zip(first, subject.cases, strict=True)) / len(subject.cases)
    if share > config.echo_most:
        return Check(
            "echo",
            False,
            f"repeating the first argument is right in {share:.1%} of the cases, "
            f"at most {config.echo_most:.0%} may be: leave out inputs that the function does not change",
            facts={"share": share},
        )
    return Check("echo", True, f"repeating the first argument is right in {share:.1%}", facts={"share": share})


STATIC = (files, splits, leak, constant, echo)
