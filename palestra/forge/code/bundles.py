"""Write a predict environment to disk as a Harbor task that is complete in itself."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from palestra.envs.bundle import CASES, SCHEMA, Case, PredictFacts
from palestra.envs.splits import SHARES
from palestra.forge.code.budget import Budget
from palestra.forge.code.find import Function
from palestra.forge.code.package import Package
from palestra.verify import inside

INSIDE = Path(inside.__file__).parent


@dataclass(frozen=True, slots=True)
class Forged:
    """What was made of one function. ``files`` are the package's files that it needs, relative to its root."""

    package: Package
    function: Function
    iterates: bool
    cases: tuple[Case, ...]
    files: tuple[str, ...]
    seed: int
    budget: Budget


def facts_of(forged: Forged) -> PredictFacts:
    counts = Counter(case.split for case in forged.cases)
    return PredictFacts(
        forge="code",
        kind="predict",
        package=forged.package.name,
        version=forged.package.version,
        licence=forged.package.licence,
        symbol=forged.function.symbol,
        module=forged.function.module,
        iterates=forged.iterates,
        source_sha256=hashlib.sha256(forged.function.source.encode()).hexdigest(),
        seed=forged.seed,
        prompt_bytes=forged.budget.prompt_bytes,
        answer_bytes=forged.budget.answer_bytes,
        rel_tol=1e-9,
        splits={split: counts[split] for split in SHARES},
    )


def write_bundle(folder: Path, forged: Forged) -> None:
    """Write the bundle to ``folder``, which must not exist. Raises OSError as the file system does."""
    facts = facts_of(forged)
    shown = shown_case(forged.cases)
    texts = {
        "task.toml": task_toml(facts),
        "instruction.md": instruction(shown),
        "environment/Dockerfile": f"FROM python:{platform.python_version()}-slim-bookworm\nWORKDIR /app\n",
        "solution/solve.sh": "#!/bin/sh\nexec python3 -I -S /solution/solve.py /app/answer.txt\n",
        "solution/solve.py": solver(facts, shown),
        "tests/test.sh": "#!/bin/sh\nexec python3 -I -S /tests/grade.py /app/answer.txt /logs/verifier/reward.txt\n",
        "tests/grade.py": GRADE.replace("@REL_TOL@", repr(facts.rel_tol)),
        "tests/expected.txt": shown.expected + "\n",
        CASES: "".join(
            json.dumps({name: getattr(case, name) for name in Case.__slots__}) + "\n" for case in forged.cases
        ),
    }
    for name, text in texts.items():
        write_file(folder / name, text.encode(), executable=name.endswith(".sh"))
    for side in ("solution", "tests"):
        shutil.copyfile(INSIDE / "literals.py", folder / side / "literals.py")
    for name in forged.files:
        write_file(folder / "solution/source" / name, (forged.package.root / name).read_bytes())
    for number, licence in enumerate(forged.package.licence_files):
        name = licence.name if number == 0 else f"{number}-{licence.name}"
        write_file(folder / "solution/licences" / name, licence.read_bytes())


def write_file(file: Path, data: bytes, executable: bool = False) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    file.chmod(0o755 if executable else 0o644)


def shown_case(cases: Sequence[Case]) -> Case:
    """The one case that the Harbor task shows: a training case, with the longest answer that is not in its own call."""
    known = [case for case in cases if case.split == "train"] or list(cases)
    return max(known, key=lambda case: (case.expected not in case.call, len(case.expected), case.call))


def instruction(case: Case) -> str:
    return (
        "# Predict the result of a call\n\n"
        "Work out what this Python call returns:\n\n"
        f"```python\n{case.call}\n```\n\n"
        "Write the value, as one Python literal and nothing else, to `/app/answer.txt`. "
        "Types count: a list is no tuple, an integer no float.\n"
    )


def solver(facts: PredictFacts, case: Case) -> str:
    """A script that answers the shown case by calling the vendored original."""
    return (
        "import os, sys\n\n"
        "here = os.path.dirname(os.path.abspath(__file__))\n"
        "sys.path += [here, os.path.join(here, 'source')]\n"
        "sys.dont_write_bytecode = True\n"
        "import importlib\n"
        "import literals\n\n"
        f"{facts.package} = importlib.import_module({facts.package!r})\n"
        f"importlib.import_module({facts.module!r})\n"
        "with open(sys.argv[1], 'w', encoding='utf-8') as answer:\n"
        f"    answer.write(literals.show({case.call}) + '\\n')\n"
    )


GRADE = '''"""Compare the answer with the expected literal, as data; nothing of the answer is executed."""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.append(here)
sys.dont_write_bytecode = True
import literals


def verdict(answer, expected):
    with open(expected, encoding="utf-8") as file:
        wanted = literals.read(file.read())
    try:
        with open(answer, encoding="utf-8") as file:
            got = literals.read(file.read(2 * literals.MAX_TEXT))
    except (OSError, UnicodeDecodeError, literals.NotPlain):
        return 0.0
    return float(literals.same(got, wanted, @REL_TOL@))


reward = verdict(sys.argv[1], os.path.join(here, "expected.txt"))
os.makedirs(os.path.dirname(sys.argv[2]), exist_ok=True)
with open(sys.argv[2], "w", encoding="utf-8") as file:
    file.write(f"{reward}\\n")
'''


def task_toml(facts: PredictFacts) -> str:
    """``task.toml``: what Harbor reads, then what Palestra reads."""
    tables: dict[str, Mapping[str, Any]] = {
        "task": {
            "name": f"palestra/{facts.symbol}",
            "version": facts.version,
            "description": f"Predict the result of calls of {facts.symbol} ({facts.package} {facts.version}).",
            "keywords": ["predict", "python", facts.package],
        },
        "metadata.palestra": {"schema": SCHEMA, **{k: v for k, v in asdict(facts).items() if k != "splits"}},
        "metadata.palestra.splits": facts.splits,
        "environment": {"workdir": "/app", "network_mode": "no-network", "cpus": 1, "memory_mb": 1024},
        "agent": {"timeout_sec": 600.0},
        "verifier": {"timeout_sec": 60.0},
    }
    return toml_text(tables)


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """``task.toml`` of these tables, by their full names."""
    lines = ['schema_version = "1.4"']
    for table, values in tables.items():
        lines += ["", f"[{table}]", *(f"{key} = {_toml(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
