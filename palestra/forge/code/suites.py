"""Hidden calls of a function: what it gave, which wrong versions of it each call tells, and which few are kept."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from palestra.forge.code.record import Refused
from palestra.gate.leaks import Thresholds
from palestra.types import Message, Outcome, Task
from palestra.verify import expect
from palestra.verify.calls import CallRun, Result
from palestra.verify.function import Call, FunctionCalls

MOST_EXPECTED = 1000
"""Characters of an expected value."""
FEWEST, MOST = 8, 24
"""Hidden calls of a task."""
FEWEST_OUTCOMES = 3
POOL = 240
"""Calls that mutants are tried on."""
RAISING = 12
MOST_SHARE = 0.5
"""Of the hidden calls that may have one outcome."""
LEAST_KILLED, LEAST_OF_ALL = 0.9, 0.8
MOST_REASONS = 4
"""Reasons to raise that a task shows; calls that raise for another one are no part of it."""
TASK = Task("forge", "forge", "train", 0, (Message("user", ""),))


@dataclass(frozen=True)
class Suite:
    """shown   calls that the task shows, with what they give
    hidden  calls that it is graded by, none of them shown
    killed, mutants  how many of the gold's mutants the hidden calls tell from it; ``alike`` more behaved as the gold in
                     every call made, though many calls reached the changed place
    """

    shown: tuple[Call, ...]
    hidden: tuple[Call, ...]
    killed: int
    mutants: int
    alike: int = 0

    @property
    def strength(self) -> float:
        return self.killed / self.mutants if self.mutants else 1.0


def stable(args: Sequence[str], runs: Sequence[CallRun], doc: str, source: str) -> list[Call]:
    """The calls that gave the same in every run, with what is expected of them. An exception is expected only where the
    docstring names it or the function's own text raises it: what happens to be raised below is nobody's promise."""
    promised = {name for name in _raised(source) if name.isidentifier()}
    calls: list[Call] = []
    for place, text in enumerate(args):
        wanted = [_expected(run.results[place], doc, promised) for run in runs]
        if wanted[0] is not None and all(one == wanted[0] for one in wanted):
            calls.append(Call(text, wanted[0]))
    return calls


def _raised(source: str) -> set[str]:
    """The exceptions that a text raises by name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            found.add(called.id if isinstance(called, ast.Name) else "")
    return found


def _expected(result: Result, doc: str, promised: set[str]) -> str | None:
    if result.mutates or result.unsuitable:
        return None
    if result.value is None:
        name = result.error or ""
        return f"raises({name})" if name.isidentifier() and (name in doc or name in promised) else None
    text = f"iter({result.value})" if result.iterates else result.value
    if len(text) > MOST_EXPECTED:
        return None
    try:
        expect.read(text)
    except expect.BadExpectation:
        return None
    return text


def unwritten(calls: Sequence[Call], wrong: Sequence[frozenset[int]], doc: str) -> list[list[int]]:
    """Places of the calls that raise what the docstring does not name, those together that the same mutants get wrong:
    one reason to raise, of which a reader must be shown one case."""
    groups: dict[frozenset[int], list[int]] = {}
    for place, call in enumerate(calls):
        if call.expected.startswith("raises(") and call.expected[7:-1] not in doc:
            signature = frozenset(number for number, one in enumerate(wrong) if place in one)
            groups.setdefault(signature, []).append(place)
    return list(groups.values())


def diverse(calls: Sequence[Call], most: int, seed: int) -> list[Call]:
    """At most ``most`` of them: up to RAISING that raise the same, for there are many reasons to; then one outcome
    after another, short ones first."""
    by_outcome: dict[str, list[Call]] = {}
    for call in sorted(calls, key=lambda one: (len(one.args), one.args)):
        by_outcome.setdefault(call.expected, []).append(call)
    queues = list(by_outcome.values())
    Random(f"diverse:{seed}").shuffle(queues)
    raising = [queue for queue in queues if queue[0].expected.startswith("raises(")]
    queues = [queue for queue in queues if queue not in raising]
    chosen = [call for queue in raising for call in queue[:RAISING]][:most]
    while queues and len(chosen) < most:
        queues = [queue for queue in queues if queue]
        chosen += [queue.pop(0) for queue in queues[: most - len(chosen)]]
    return chosen


async def told_apart(
    grader: FunctionCalls, calls: Sequence[Call], works: Sequence[Mapping[str, bytes]]
) -> list[frozenset[int]]:
    """For each work the places of the calls that it gets wrong; all of them where it cannot be called at all."""
    found: list[frozenset[int]] = []
    for work in works:
        right = await grader.right(Outcome((), work), tuple(calls))
        found.append(frozenset(place for place, is_right in enumerate(right) if not is_right))
    return found


def choose(
    calls: Sequence[Call],
    wrong: Sequence[frozenset[int]],
    examples: Sequence[Call],
    doc: str,
    *,
    visible: str = "",
    alike: int = 0,
    show: int = 3,
) -> Suite:
    """The suite of a function whose mutants get ``wrong`` the places of ``calls``.

    Shown are the docstring's examples; of each reason to raise that the docstring does not name, one call; and up to
    ``show`` calls more that tell most mutants which those do not: a reader who satisfies all that is shown should not
    have to guess. Hidden are other calls, none of whose texts stands in ``visible``: enough to tell each mutant twice
    where that can be, then the most different ones. ``alike``: mutants besides that behave as the original.

    Raises Refused where the hidden calls would be too few, too much alike, or tell fewer than LEAST_KILLED of the
    mutants, or of all with those that are alike fewer than LEAST_OF_ALL."""
    known = {call.args for call in examples}
    reasons = [
        sorted(group, key=lambda place: (len(calls[place].args), place)) for group in unwritten(calls, wrong, doc)
    ]
    told = [group[0] for group in reasons[:MOST_REASONS] if calls[group[0]].args not in known]
    left_out = {place for group in reasons[MOST_REASONS:] for place in group}
    shown = [place for place, call in enumerate(calls) if call.args in known] + told
    barred = {*shown, *left_out, *(place for place, call in enumerate(calls) if _stands_in(call, visible))}
    places = [place for place in range(len(calls)) if place not in barred]
    killable = [one - left_out for one in wrong if one - left_out]
    hidden = _cover(places, killable, 1, MOST)  # first: a call that alone tells a mutant is not shown
    free = [place for place in places if place not in hidden]
    more = _cover(free, [one for one in killable if not one & set(shown)], 1, show)
    rest = [place for place in free if place not in more]
    hidden += _cover(rest, [one for one in killable if len(one & set(hidden)) < 2], 1, MOST - len(hidden))
    hidden += _fill(calls, rest, hidden, FEWEST)
    picked = _balanced(calls, hidden)
    outcomes = {calls[place].expected for place in picked}
    if len(picked) < FEWEST or len(outcomes) < FEWEST_OUTCOMES:
        raise Refused(f"gives fewer than {FEWEST} different hidden calls with {FEWEST_OUTCOMES} outcomes")
    killed = sum(bool(one & set(picked)) for one in wrong)
    if killed < LEAST_KILLED * len(wrong) or killed < LEAST_OF_ALL * (len(wrong) + alike):
        raise Refused(f"its calls tell fewer than {LEAST_KILLED:.0%} of its mutants from it")
    seen = (*examples, *(calls[place] for place in (*told, *more)))
    return Suite(seen, tuple(calls[place] for place in picked), killed, len(wrong), alike)


def _stands_in(call: Call, visible: str) -> bool:
    """Whether a reader of ``visible`` sees the arguments or the result of a call; short ones stand anywhere."""
    return any(len(text) >= Thresholds().letters and text in visible for text in (call.args, call.expected))


def _cover(places: Sequence[int], wrong: Sequence[frozenset[int]], times: int, most: int) -> list[int]:
    """Greedily, the places that tell most of what is not yet told ``times`` times; at most ``most``."""
    left = {number: times for number, _ in enumerate(wrong)}
    chosen: list[int] = []
    while len(chosen) < most:
        gain = Counter(place for number, one in enumerate(wrong) if left[number] > 0 for place in one)
        open_ = [place for place in places if place not in chosen and gain[place]]
        if not open_:
            return chosen
        best = max(open_, key=lambda place: (gain[place], -place))
        chosen.append(best)
        for number, one in enumerate(wrong):
            left[number] -= best in one
    return chosen


def _fill(calls: Sequence[Call], places: Sequence[int], chosen: Sequence[int], least: int) -> list[int]:
    """More places, of outcomes that are rare among the chosen, until there are ``least``."""
    counts = Counter(calls[place].expected for place in chosen)
    more: list[int] = []
    while len(chosen) + len(more) < least:
        open_ = [place for place in places if place not in chosen and place not in more]
        if not open_:
            break
        best = min(open_, key=lambda place: (counts[calls[place].expected], place))
        counts[calls[best].expected] += 1
        more.append(best)
    return more


def _balanced(calls: Sequence[Call], places: Sequence[int]) -> list[int]:
    """Without the last ones of an outcome that has more than MOST_SHARE."""
    kept = list(places)
    while kept:
        outcome, count = Counter(calls[place].expected for place in kept).most_common(1)[0]
        if count <= MOST_SHARE * len(kept):
            break
        kept.remove([place for place in kept if calls[place].expected == outcome][-1])
    return sorted(kept)


def constants_of(source: str, name: str) -> set[str]:
    """Texts and numbers in the body of a function that a reader could not guess: no small number, no short text."""
    tree = ast.parse(source)
    found: set[str] = set()
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == name:
            for statement in function.body:
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    continue
                found |= {_shown(node) for node in ast.walk(statement) if isinstance(node, ast.Constant)}
    return found - {""}


def _shown(node: ast.Constant) -> str:
    value = node.value
    if isinstance(value, str) and len(value) > 2:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > 10 and value not in (100, 1000):
        return repr(value)
    return ""
