"""What is found out about a function before a task is made of it: its text, what it gives, what wrong ones give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from palestra.errors import BundleError
from palestra.forge.code import suites
from palestra.forge.code.edges import edges
from palestra.forge.code.find import Source
from palestra.forge.code.inputs import Plan
from palestra.forge.code.package import Package
from palestra.forge.code.record import Refused, check_words
from palestra.forge.code.slices import crash_at, cut
from palestra.gate.mutants import Mutant, python_mutants
from palestra.types import Outcome
from palestra.verify.calls import CallRun, Target, run_calls
from palestra.verify.calls import Surroundings as Around
from palestra.verify.forkers import Forkers
from palestra.verify.function import Call, FunctionCalls

SINGLE = "solution.py"
CALLS, EDGES = 400, 200
"""Calls made of a function: of the shapes of its examples; with values that its own text speaks of."""
ARGS_BYTES = 160
MUTANTS = 40
FEWEST_MUTANTS = 5
CALL_S, TOTAL_S = 0.2, 3.0
MOST_SECRETS = 4
REACHED = 10
OTHER = Around(hash_seed=7, timezone="NZST-12NZDT,M9.5.0,M4.1.0/3", locale="C", cwd="elsewhere", home="/home/other")


@dataclass(frozen=True)
class Study:
    """files     the work, by path: one file where the function could be cut out of its module, else the package's own
    file      the one that holds the function;  name: of the function in it
    module    to import, where the work is a package
    calls     what it gave, the same in all surroundings
    mutants   wrong versions of the file, and ``wrong``: the places of ``calls`` that each gets wrong
    examples  the calls of its docstring
    alike     how many mutants besides behaved as the gold in every call
    """

    package: Package
    plan: Plan
    files: Mapping[str, bytes]
    file: str
    name: str
    module: str | None
    calls: tuple[Call, ...]
    mutants: tuple[Mutant, ...]
    wrong: tuple[frozenset[int], ...]
    examples: tuple[Call, ...]
    alike: int = 0

    def visible(self, start: str) -> str:
        """All text that the agent sees of the work, when the function's file is ``start``."""
        return "\n".join(
            [start, *(data.decode(errors="replace") for name, data in self.files.items() if name != self.file)]
        )

    @property
    def source(self) -> str:
        return self.files[self.file].decode()

    def grader(self, forkers: Forkers | None = None) -> FunctionCalls:
        return FunctionCalls(
            self.name, self.file, self.module, credit="all", call_s=CALL_S, total_s=TOTAL_S, forkers=forkers
        )


async def study(
    package: Package, entries: tuple[str, ...], source: Source, plan: Plan, seed: int, forkers: Forkers
) -> Study:
    """Raises Refused with the reason where no task can be made of the function, and SandboxError."""
    function = plan.function
    inputs = [*islice(plan.calls(seed, ARGS_BYTES, 0), CALLS), *edges(plan, source.texts[function.home], EDGES)]
    inputs = [text for text in dict.fromkeys(inputs) if len(text) <= ARGS_BYTES]
    if not inputs:
        raise Refused(f"no call of it fits in {ARGS_BYTES} bytes")
    target = Target(package.root, function.module, function.path, entries)
    runs = [await run_calls(target, inputs, around=around, call_s=CALL_S) for around in (Around(), OTHER)]
    for run in runs:
        check_words(run, has_args=True)
        _refuse_effects(run)
    if any(result.mutates for result in runs[0].results):
        raise Refused("changes its arguments")
    calls = suites.stable(inputs, runs, function.doc, function.source)
    if len(calls) < suites.FEWEST:
        raise Refused(f"fewer than {suites.FEWEST} of its calls give plain data, the same every time")
    files, file, name, module = _work(package, source, plan, runs[0].files)
    bare = Study(package, plan, files, file, name, module, (), (), (), ())
    examples = [call for call in calls if call.args in plan.example_calls()]
    pool = _with(suites.diverse(calls, suites.POOL, seed), examples)
    right = await bare.grader(forkers).right(Outcome((), files), tuple(pool))
    pool = [call for call, is_right in zip(pool, right, strict=True) if is_right]
    if len(pool) < suites.FEWEST:
        raise Refused("gives something else when it is imported from its text alone")
    live = _mutants(bare, seed)
    works = [{**files, file: mutant.source.encode()} for mutant in live]
    wrong = await suites.told_apart(bare.grader(forkers), pool, works)
    alike = await _alike(bare, live, wrong, pool, forkers)
    shown = tuple(call for call in examples if call in pool)
    kept = [place for place, mutant in enumerate(live) if mutant not in alike]
    judged, told = tuple(live[place] for place in kept), tuple(wrong[place] for place in kept)
    return Study(package, plan, files, file, name, module, tuple(pool), judged, told, shown, len(alike))


async def _alike(
    bare: Study, live: Sequence[Mutant], wrong: Sequence[frozenset[int]], pool: Sequence[Call], forkers: Forkers
) -> list[Mutant]:
    """The mutants that no call tells from the gold though at least REACHED calls run the statement that was changed:
    equivalent as far as anyone can see. (Those that the mutator itself knows to be equivalent are not made.)"""
    silent = [mutant for mutant, places in zip(live, wrong, strict=True) if not places]
    lines = sorted({mutant.line for mutant in silent})
    crashes = [{**bare.files, bare.file: crash_at(bare.source, line).encode()} for line in lines]
    reached = await suites.told_apart(bare.grader(forkers), pool, crashes)
    often = {line for line, places in zip(lines, reached, strict=True) if len(places) >= REACHED}
    return [mutant for mutant in silent if mutant.line in often]


def _refuse_effects(run: CallRun) -> None:
    """Raises Refused where a call did something besides returning. What the import did is no matter here: it was in a
    sandbox, and so is every grading."""
    seen = [event for call, event, _ in run.effects if call != "import"]
    if seen:
        raise Refused(f"has an effect besides its result ({seen[0]})")
    if run.state:
        raise Refused("changes the state of its module or process")


def _with(calls: list[Call], more: Sequence[Call]) -> list[Call]:
    return [*calls, *(call for call in more if call not in calls)]


def _work(
    package: Package, source: Source, plan: Plan, used: Sequence[str]
) -> tuple[dict[str, bytes], str, str, str | None]:
    """(files, the function's file, its name, the module to import or None)."""
    home, name = plan.function.home, plan.function.node.name
    piece = cut(source.texts[home], name)
    if piece is not None:
        return {SINGLE: piece.source.encode()}, SINGLE, name, None
    data = [path for path in used if not path.endswith(".py")]
    if data:
        raise Refused("reads data files of its package")
    files = {path: (package.root / path).read_bytes() for path in used}
    file = source.files[home].relative_to(package.root).as_posix()
    if file not in files:
        raise Refused("is not defined in a file that its import uses")
    return files, file, name, home


def _mutants(made: Study, seed: int) -> list[Mutant]:
    try:
        live = python_mutants(made.source, made.name, limit=MUTANTS, seed=seed, name=made.file).live
    except BundleError as error:
        raise Refused(f"cannot be mutated: {error}") from None
    if len(live) < FEWEST_MUTANTS:
        raise Refused(f"is too small to measure tests by: fewer than {FEWEST_MUTANTS} mutants")
    return list(live)


def secrets(made: Study, visible: str) -> list[str]:
    """Texts in the function's body that stand in its answers and in nothing that is shown: nobody could know them.

    Raises Refused where there are more than can be shown."""
    found = [
        text
        for text in sorted(suites.constants_of(made.source, made.name))
        if text not in visible and any(text in call.expected and text not in call.args for call in made.calls)
    ]
    if len(found) > MOST_SECRETS:
        raise Refused("its answers hold texts and numbers that nothing shown tells")
    return found


def deciding(made: Study, texts: Sequence[str]) -> list[Call]:
    """One call for each of ``texts`` whose answer shows it."""
    chosen: list[Call] = []
    for text in texts:
        if not any(text in call.expected for call in chosen):
            shows = [call for call in made.calls if text in call.expected]
            chosen.append(min(shows, key=lambda call: (len(call.args), call.args)))
    return chosen
