"""The gate over task bundles: the shipped examples, and each check failing for its own reason."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from palestra.envs.bundle import content_hash, load_environment
from palestra.gate import GateConfig, check, verify
from palestra.gate.probes import Ground, probes
from palestra.gate.probes.base import stubs
from palestra.gate.surroundings import clock_shifter, surroundings
from palestra.gate.tasks.stubs import quoted
from palestra.sandboxes import open_sandbox
from tests.bundles import CASES, GOLD, task_bundle

EXAMPLES = Path(__file__).parents[2] / "examples/bundles"
BROKEN = {
    "broken-answer-shown": "leak: environment/notes/old_attempt.py:2",
    "broken-weak-tests": "mutants: ",
    "broken-shared-process": "probes: ",
    "broken-clock": "gold: passes",
}
CMP = "#!/bin/sh\ncmp -s /app/solution.py /tests/right.py && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n"
QUICK = GateConfig(level="quick")


def examined(path: Path, config: GateConfig | None = None):
    (report,) = check([path], config=config)
    return report


def copied(name: str, tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("certificate.json")
    return Path(shutil.copytree(EXAMPLES / name, tmp_path / name, ignore=ignore))


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.iterdir()))
def test_every_example_is_admitted_or_refused_for_its_reason(name, tmp_path):
    path = copied(name, tmp_path)
    if name == "broken-clock" and clock_shifter() is None:
        pytest.skip("no library to shift a clock with; install libfaketime")
    report = examined(path)
    if name in BROKEN:
        assert report.verdict == "refused" and report.reason.startswith(BROKEN[name]), report.reason
        assert not (path / "certificate.json").exists()
        return
    assert report.verdict == "admitted", report.reason
    certificate = json.loads((path / "certificate.json").read_text())
    assert certificate["bundle_sha256"] == content_hash(path) and verify(path)[0].valid
    assert certificate["gold"] == {"runs": 5, "passes": 5} and certificate["null"]["passes"] == 0
    assert certificate["probes"]["leaked"] == [] and certificate["probes"]["run"] >= 4
    assert load_environment(path).spec.version == report.bundle_sha256


def test_the_certificate_lists_what_survived(tmp_path):
    path = task_bundle(tmp_path / "sum", cases=[case for case in CASES if case[1] != "0"])
    report = examined(path, GateConfig(mutants_least=0.5))
    assert report.verdict == "admitted", report.reason
    found = json.loads((path / "certificate.json").read_text())["mutants"]
    assert found["generated"] == found["killed"] + len(found["survived"]) + found["unscored"]
    assert any("reversed(list(a))" in survivor["diff"] for survivor in found["survived"])
    assert examined(path, GateConfig(mutants_least=1.0)).reason.startswith("mutants: ")


def test_levels_say_how_much_is_done(tmp_path):
    path = task_bundle(tmp_path / "sum")
    quick = {done.name: done for done in examined(path, QUICK).checks}
    assert quick["gold"].facts["runs"] == 2 and "novelty" not in quick
    assert "not made" in quick["mutants"].evidence and "not run" in quick["probes"].evidence
    full = {done.name: done for done in examined(path).checks}
    assert full["mutants"].facts["generated"] <= 20
    every = {done.name: done for done in examined(path, GateConfig(level="exhaustive")).checks}
    assert every["gold"].facts["runs"] == 10
    assert every["mutants"].facts["generated"] >= full["mutants"].facts["generated"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"instruction": "Do it.\n"}, "instruction: instruction.md has 2 words"),
        ({"instruction": "Write a function g in /app/solution.py that sums a list.\n"}, "instruction: .*not name f,"),
        ({"instruction": "Write a function f in /app/other.py that sums a list.\n"}, "does not name solution.py"),
        ({"instruction": f"Write `f` in solution.py like this:\n\n{GOLD}"}, "leak: instruction.md:"),
        (
            {"more": {"environment/copy.jsonl": json.dumps({"args": "[1, 2, 3, 4], 3"})}},
            "leak: environment/copy.jsonl:1",
        ),
        ({"more": {"environment/Dockerfile": "FROM python:3\nCOPY ../tests /t\n"}}, "no such file"),
        ({"gold": "def f(a, b=2):\n    return 0\n"}, "gold: passes 0 of 2 times: the gold scores 0"),
        ({"gold": "def f(:\n"}, "gold: passes 0 of 2 times: .*SyntaxError"),
        ({"more": {"solution/solve.sh": "exit 3\n"}}, r"solve.sh exited with 3"),
        ({"more": {"solution/solve.sh": "ln -s /etc /app/solution.py\n"}}, "which is a symbolic link"),
        (
            {"more": {"solution/solve.sh": "true\n"}},
            "gold: passes 0 of 2 times: the gold scores 0: there is no solution.py",
        ),
        ({"cases": [("[]", "raises(ValueError)")]}, "null: a function that raises ValueError scores 1"),
        (
            {"gold": "def f(a, b=2):\n    return a\n", "cases": [("[1]", "[1]")]},
            "null: a function that returns its first",
        ),
        (
            {"gold": "def f(a, b=2):\n    return 7\n", "cases": [("[1]", "7"), ("[2]", "7")]},
            "commonest result scores 1",
        ),
    ],
)
def test_each_check_fails_for_its_own_reason(tmp_path, change, told):
    report = examined(task_bundle(tmp_path / "sum", **change), QUICK)
    assert report.verdict == "refused"
    assert re.search(told, report.reason), report.reason


def test_a_gold_that_depends_on_the_hash_seed_or_the_clock_is_refused(tmp_path):
    seeded = "def f(a, b=2):\n    return 7 if list({'x', 'y', 'z', 'u'})[0] == list({'x', 'y', 'z', 'u'})[0] else 0\n"
    assert examined(task_bundle(tmp_path / "same", gold=seeded, cases=[("1", "7")]), QUICK).reason.startswith("null")
    hashed = "def f(a, b=2):\n    return hash('x') % 2 ** 20\n"
    report = examined(task_bundle(tmp_path / "seed", gold=hashed, cases=[("1", "7")]), QUICK)
    assert report.reason.startswith("gold: passes 0 of 2")
    if clock_shifter() is not None:
        dated = "import datetime\ndef f(a, b=2):\n    return datetime.date.today().year < 2027\n"
        report = examined(task_bundle(tmp_path / "clock", gold=dated, cases=[("1", "True")]))
        assert report.reason.startswith("gold: passes") and "clock +400d" in report.reason


def test_an_unstable_work_is_told(tmp_path):
    solve = '#!/bin/bash\ncp /solution/solution.py /app/solution.py\necho "# $RANDOM$RANDOM" >> /app/solution.py\n'
    report = examined(task_bundle(tmp_path / "sum", more={"solution/solve.sh": solve}), QUICK)
    found = next(done for done in report.checks if done.name == "determinism")
    assert report.verdict == "admitted" and "solution.py in different ways" in found.evidence


def test_a_slow_gold_is_refused(tmp_path):
    slow = "#!/bin/bash\nsleep 0.3\ncp /solution/solution.py /app/solution.py\n"
    path = task_bundle(tmp_path / "sum", more={"solution/solve.sh": slow})
    assert examined(path, GateConfig(level="quick", gold_s=0.2)).reason.startswith("limits: the gold takes")


def test_the_probes_are_named_explained_and_different():
    found = probes()
    assert len(found) >= 60 and len({probe.name for probe in found}) == len(found)
    kinds = {
        "carrier",
        "runner",
        "interpreter",
        "comparison",
        "expected",
        "resources",
        "files",
        "specification",
        "judge",
    }
    assert {probe.kind for probe in found} == kinds
    ground = Ground(
        {"a.txt": b""}, {"m.py": b"class C:\n    def m(self): pass\ndef f(): pass\n"}, frozenset({"python"})
    )
    for probe in found:
        works = probe.attack(ground)
        assert works and all("m.py" in work for work in works), probe.name
        for work in works:
            if probe.needs == "python":
                compile(work["m.py"], probe.name, "exec")
                assert b"def f(*args" in work["m.py"] and b"    def m(*args" in work["m.py"]


def test_stubs_take_the_names_and_nothing_else():
    assert stubs(
        b"def f(x):\n    return SECRET\nclass C:\n    def __init__(self): ...\n    def m(self): ...\n", "return 1"
    ) == (
        "def f(*args, **kwargs):\n    return 1\nclass C:\n    def __init__(self, *args, **kwargs): pass\n"
        "    def m(*args, **kwargs):\n        return 1"
    )
    assert stubs(b"\xff", "x") == stubs(b"def f(:", "x") == ""


@pytest.mark.parametrize("text", ["plain", 'it\'s "so"', "a\\b\n\tc", "$HOME @x %d"])
@pytest.mark.parametrize(("language", "argv"), [("bash", "printf %s {}"), ("perl", "perl -e 'print {};'")])
async def test_texts_are_quoted_for_their_language(text, language, argv):
    async with open_sandbox("local") as box:
        if language == "bash":
            ran = await box.exec(["bash", "-c", argv.format(quoted(text, language))])
        else:
            ran = await box.exec(["perl", "-e", f"print {quoted(text, language)};"])
    assert ran.stdout.decode() == text, ran.stderr


def test_surroundings_differ_and_the_first_are_plain():
    found = surroundings(10)
    assert len(set(found)) == 10 and found[0].env() == {
        "PYTHONHASHSEED": "0",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "LANG": "C.UTF-8",
    }


def test_the_pass_rate_of_named_solvers_is_measured_and_bounded(tmp_path):
    path = task_bundle(tmp_path / "sum")
    config = GateConfig(level="quick", solvers=("scripted:gold", "scripted:null"), solver_runs=3)
    assert examined(path, config).verdict == "admitted"
    found = json.loads((path / "certificate.json").read_text())["difficulty"]
    assert found["scripted:gold"] == {"acc": 1.0, "lo": pytest.approx(0.4385, abs=1e-4), "hi": 1.0, "n": 3}
    assert found["scripted:null"]["acc"] == 0.0
    hard = examined(path, GateConfig(level="quick", solvers=("scripted:null",), solved_least=0.1))
    assert hard.reason.startswith("difficulty: scripted:null passes 0 of 8 (0% to 32%)")
    easy = examined(path, GateConfig(level="quick", solvers=("scripted:gold",), solved_most=0.9))
    assert easy.verdict == "refused" and "must be in [0, 0.9]" in easy.reason


def test_a_solver_that_cannot_be_scored_is_told(tmp_path):
    path = task_bundle(tmp_path / "work", grader='kind = "command"\n', more={"tests/test.sh": "#!/bin/sh\nexit 0\n"})
    assert "wrote no reward" in examined(path, QUICK).reason
    sound = task_bundle(
        tmp_path / "shell", grader='kind = "command"\n', more={"tests/test.sh": CMP, "tests/right.py": GOLD}
    )
    config = GateConfig(level="quick", solvers=("scripted:gold",), solver_runs=1)
    assert "no solver's rollout was scored" in examined(sound, config).reason
