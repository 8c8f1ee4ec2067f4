"""Write task bundles: implement, and repair."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from palestra.forge.code import instruct
from palestra.forge.code.bundles import toml_text, write_file
from palestra.forge.code.record import Refused
from palestra.forge.code.slices import without_body
from palestra.forge.code.study import Study, deciding, secrets
from palestra.forge.code.suites import Suite, choose
from palestra.gate.mutants import Mutant
from palestra.verify.function import Call

SCHEMA = 1
LOUD = 0.9
"""A bug that more of the calls show is too loud to be looked for."""
NOTE = (
    "#!/bin/sh\n"
    "# Palestra grades this task by tests/cases.jsonl, out of the work's reach; a container has no such grader.\n"
    "echo 'this task is graded by palestra' >&2\nexit 1\n"
)


@dataclass(frozen=True)
class TaskBundle:
    """A task that is ready to be written. ``start`` and ``gold`` are the work before and after."""

    id: str
    kind: str
    made: Study
    instruction: str
    start: Mapping[str, bytes]
    gold: Mapping[str, bytes]
    suite: Suite
    seed: int


def implement(made: Study, seed: int) -> TaskBundle:
    """Write a function's body. Raises Refused."""
    stub = without_body(made.source, made.name)
    if stub is None:
        raise Refused("stands on one line")
    visible = made.visible(stub)
    must = deciding(made, secrets(made, visible))
    examples = [*made.examples, *(call for call in must if call not in made.examples)]
    suite = choose(made.calls, made.wrong, examples, made.plan.function.doc, visible=visible, alike=made.alike)
    words = instruct.implement(made, suite.shown)
    start = {**made.files, made.file: stub.encode()}
    return TaskBundle(
        f"{made.plan.function.symbol}-implement", "implement", made, words, start, made.files, suite, seed
    )


def repair(made: Study, seed: int) -> TaskBundle:
    """Find a bug: a mutant that some calls show and most do not. Raises Refused where no mutant makes a task."""
    order = list(range(len(made.mutants)))
    Random(f"repair:{seed}:{made.plan.function.symbol}").shuffle(order)
    for place in order:
        shows = sorted(made.wrong[place])
        if 1 < len(shows) <= LOUD * len(made.calls):
            bundle = _repair(made, made.mutants[place], shows, seed)
            if bundle is not None:
                return bundle
    raise Refused("no mutant of it is a bug that some calls show and most do not")


def _repair(made: Study, mutant: Mutant, shows: Sequence[int], seed: int) -> TaskBundle | None:
    telling = sorted((made.calls[one] for one in shows), key=lambda call: (len(call.args), call.args))
    symptom, doc, visible = telling[0], made.plan.function.doc, made.visible(mutant.source)
    examples = [call for call in made.examples if call not in telling]
    try:
        suite = choose(made.calls, made.wrong, [*examples, symptom], doc, visible=visible, alike=made.alike, show=0)
    except Refused:
        return None
    if not any(call in telling for call in suite.hidden):
        return None  # nothing hidden would show the bug
    words = instruct.repair(made, symptom, "gives something else", examples[:2])
    start = {**made.files, made.file: mutant.source.encode()}
    return TaskBundle(f"{made.plan.function.symbol}-repair", "repair", made, words, start, made.files, suite, seed)


def write_task(folder: Path, bundle: TaskBundle) -> None:
    """Write the bundle to ``folder``, which must not exist. Raises OSError as the file system does."""
    made = bundle.made
    texts: dict[str, bytes] = {
        "task.toml": _toml(bundle).encode(),
        "instruction.md": bundle.instruction.encode(),
        "environment/Dockerfile": f"FROM python:{platform.python_version()}-slim-bookworm\nWORKDIR /app\n".encode(),
        "solution/solve.sh": f"#!/bin/sh\nset -e\ncp /solution/{made.file} /app/{made.file}\n".encode(),
        f"solution/{made.file}": bundle.gold[made.file],
        "tests/test.sh": NOTE.encode(),
        "tests/cases.jsonl": "".join(_case(call) for call in bundle.suite.hidden).encode(),
        **{f"environment/{name}": data for name, data in bundle.start.items()},
    }
    for name, data in texts.items():
        write_file(folder / name, data, executable=name.endswith(".sh"))
    for number, licence in enumerate(made.package.licence_files):
        name = licence.name if number == 0 else f"{number}-{licence.name}"
        write_file(folder / "solution/licences" / name, licence.read_bytes())


def _case(call: Call) -> str:
    return json.dumps({"args": call.args, "expected": call.expected}) + "\n"


def _toml(bundle: TaskBundle) -> str:
    made = bundle.made
    function, package = made.plan.function, made.package
    grader: dict[str, Any] = {"kind": "calls", "symbol": made.name, "artifact": made.file, "rules": {"rel_tol": 1e-9}}
    if made.module is not None:
        grader["module"] = made.module
    provenance = {
        "package": package.name,
        "package_version": package.version,
        "licence": package.licence,
        "symbol": function.symbol,
        "source_sha256": hashlib.sha256(function.source.encode()).hexdigest(),
    }
    return toml_text(
        {
            "task": {
                "name": f"palestra/{bundle.id}",
                "version": package.version,
                "description": f"{bundle.kind.capitalize()} {function.symbol} ({package.name} {package.version}).",
                "keywords": [bundle.kind, "python", package.name],
            },
            "metadata.palestra": {
                "schema": SCHEMA,
                "forge": "code",
                "kind": bundle.kind,
                "language": "python",
                "seed": bundle.seed,
                "packages": [package.name],
            },
            "metadata.palestra.provenance": provenance,
            "metadata.palestra.grader": grader,
            "environment": {"workdir": "/app", "network_mode": "no-network", "cpus": 1, "memory_mb": 1024},
            "agent": {"timeout_sec": 600.0},
            "verifier": {"timeout_sec": 60.0},
        }
    )
