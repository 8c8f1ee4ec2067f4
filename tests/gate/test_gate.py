"""The gate: a sound bundle is admitted, and each way of being unsound is refused, by the check that is about it."""

import json
import shutil
import tomllib

import pytest

from palestra.envs.bundle import content_hash, load_environment, read_cases
from palestra.errors import BundleError, GateError, OutputError
from palestra.forge.code import forge_code
from palestra.gate import GateConfig, check, verify

SOURCE = '''
"""A shop."""

memory = []


def tag(name, count=2):
    """
    >>> tag("blue_shirt", 3)
    'BLUE SHIRT x3'
    """
    return name.upper().replace("_", " ") + " x" + str(count)
'''
RETURN = '    return name.upper().replace("_", " ") + " x" + str(count)\n'


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate")
    (folder / "shop.py").write_text(SOURCE)
    forge_code([str(folder / "shop.py")], folder / "out", cases=400)
    return folder / "out" / "shop.tag"


@pytest.fixture
def bundle(forged, tmp_path):
    return shutil.copytree(forged, tmp_path / "shop.tag")


def refused(bundle, name, **settings):
    """The evidence of the check that refused ``bundle``, which must be ``name``; no certificate may stand."""
    (report,) = check([bundle], config=GateConfig(**settings))
    assert (report.verdict, report.checks[-1].name, report.checks[-1].passed) == ("refused", name, False), report
    assert all(passed.passed for passed in report.checks[:-1])
    assert not (bundle / "certificate.json").exists() and report.reason.startswith(f"{name}: ")
    return report.checks[-1].evidence


def with_source(bundle, new, old=RETURN):
    file = bundle / "solution/source/shop.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def with_cases(bundle, change):
    """Rewrite the cases, and the counts of their splits, as ``change`` of a list of dicts says."""
    file = bundle / "tests/cases.jsonl"
    cases = change([json.loads(line) for line in file.read_text().splitlines()])
    file.write_text("".join(json.dumps(case) + "\n" for case in cases))
    toml = (bundle / "task.toml").read_text()
    for split in ("train", "validation", "heldout"):
        old = tomllib.loads(toml)["metadata"]["palestra"]["splits"][split]
        toml = toml.replace(f"{split} = {old}\n", f"{split} = {sum(case['split'] == split for case in cases)}\n")
    (bundle / "task.toml").write_text(toml)


def test_a_sound_bundle_is_admitted_with_the_evidence(bundle):
    (report,) = check([bundle])
    assert report.verdict == "admitted" and report.reason == "" and report.id == "shop.tag"
    names = ["files", "splits", "leak", "constant", "echo", "runs", "limits", "determinism", "gold", "null", "effects"]
    names += ["novelty"]
    assert [done.name for done in report.checks] == names
    certificate = json.loads((bundle / "certificate.json").read_text())
    assert certificate["bundle_sha256"] == content_hash(bundle) == report.bundle_sha256
    assert certificate["gold"]["runs"] == certificate["gold"]["passes"] >= 256
    assert certificate["null"]["passes"] == 0 and certificate["determinism"] == {
        "processes": 5,
        "calls": certificate["gold"]["runs"],
        "unstable": 0,
    }
    assert certificate["mutants"] is None and certificate["probes"] is None
    assert load_environment(bundle).spec.version == report.bundle_sha256


def test_verify_derives_the_hash_again(bundle):
    assert not verify(bundle)[0].valid
    check([bundle])
    assert verify(bundle)[0].valid and verify(bundle.parent)[0].valid
    with (bundle / "tests/cases.jsonl").open("a") as file:
        file.write("\n")
    (result,) = verify(bundle)
    assert not result.valid and "void" in result.reason
    with pytest.raises(GateError, match="void"):
        load_environment(bundle)


def test_a_refused_bundle_loses_its_certificate(bundle):
    check([bundle])
    with_source(bundle, '    return name + " x" + str(count)\n')
    refused(bundle, "gold")


def test_gold_is_the_bundles_own_source_run_again(bundle):
    with_source(bundle, '    return "BLUE SHIRT x3"\n')
    evidence = refused(bundle, "gold")
    assert "drawn tasks" in evidence and "another value than recorded" in evidence


def test_one_wrong_answer_among_all_is_found(bundle):
    def spoil(cases):
        cases[137]["expected"] = "'wrong'"
        return cases

    with_cases(bundle, spoil)
    assert "differs on 1 cases" in refused(bundle, "gold")


@pytest.mark.parametrize(
    ("body", "check_name", "told"),
    [
        ("    return str(hash(name))\n", "determinism", "different results"),
        ("    import time\n    return time.tzname[0] + name\n", "determinism", "different results"),
        ("    import os\n    return os.getcwd() + name\n", "determinism", "different results"),
        ("    import os\n    return os.path.expanduser('~/') + name\n", "determinism", "different results"),
        ("    memory.append(1)\n    return name + str(len(memory))\n", "determinism", "different results"),
        ("    import random\n    return random.random()\n", "determinism", "different results"),
        ("    print(name)\n" + RETURN, "effects", "output"),
        ("    open('x', 'w').close()\n" + RETURN, "effects", "open for writing"),
        ("    memory.append(1)\n" + RETURN, "effects", "shop.memory"),
        ("    import random\n    random.random()\n" + RETURN, "effects", "random state"),
        ("    import socket\n    socket.socket().close()\n" + RETURN, "effects", "socket"),
        ("    import os\n    os._exit(0)\n", "runs", "again and again"),
        ("    x = sum(range(200_000))\n" + RETURN, "limits", "slowest call"),
    ],
)  # fmt: skip
def test_an_unsound_function_is_refused(bundle, body, check_name, told):
    with_source(bundle, body)
    if check_name == "limits":
        assert told in refused(bundle, check_name, call_s=0.0005)
    else:
        assert told in refused(bundle, check_name)


@pytest.mark.parametrize(
    ("line", "told"),
    [("raise ValueError", "ValueError"), ("import os; os._exit(0)", "ended the process"), ("import gone", "gone")],
)
def test_a_source_that_cannot_be_imported_is_refused(bundle, line, told):
    with_source(bundle, f"{line}\nmemory = []\n", "memory = []\n")
    assert told in refused(bundle, "runs")


def test_a_case_in_the_wrong_split_is_refused(bundle):
    def move(cases):
        case = next(case for case in cases if case["split"] == "heldout")
        case["split"] = "train"
        return cases

    with_cases(bundle, move)
    assert "1 cases are not in the split" in refused(bundle, "splits")


def test_an_empty_split_is_refused(bundle):
    with_cases(bundle, lambda cases: [case for case in cases if case["split"] != "validation"])
    assert "split validation has no case" in refused(bundle, "splits")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda cases: cases[:199], "at least 200"),
        (lambda cases: [*cases, cases[0]], "1 calls stand twice"),
        (lambda cases: [{**cases[0], "expected": "open('x')"}, *cases[1:]], "cannot be read"),
        (lambda cases: [{**cases[0], "call": "shop.other(1)"}, *cases[1:]], "must be a call shop.tag"),
    ],
)
def test_cases_must_be_many_distinct_and_readable(bundle, change, told):
    with_cases(bundle, change)
    assert told in refused(bundle, "files")


def test_a_constant_answer_is_refused(bundle):
    with_cases(
        bundle, lambda cases: [{**case, "expected": "'x'"} if n % 2 else case for n, case in enumerate(cases)] + []
    )
    assert refused(bundle, "constant", constant_most=0.4).startswith("the fixed answer 'x' is right in 50.0%")


def test_constant_answers_count_by_value_not_by_spelling(bundle):
    spellings = ["{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}"]
    with_cases(bundle, lambda cases: [{**case, "expected": spellings[n % 2]} for n, case in enumerate(cases)])
    assert "right in 100.0%" in refused(bundle, "constant")


def test_echoing_the_first_argument_is_refused(bundle):
    def echo(cases):
        return [
            {**case, "expected": case["call"].removeprefix("shop.tag(").rstrip(")").split(",")[0]} for case in cases
        ]

    with_cases(bundle, echo)
    assert "repeating the first argument" in refused(bundle, "echo")


def test_a_hidden_call_in_the_instruction_is_refused(bundle):
    hidden = next(case for case in read_cases(bundle) if case.split == "heldout")
    with (bundle / "instruction.md").open("a") as file:
        file.write(f"For example, {hidden.call} is something.\n")
    lines = (bundle / "instruction.md").read_text().count("\n")
    assert f"1 of them hidden ones (instruction.md:{lines})" in refused(bundle, "leak")


@pytest.mark.parametrize("name", ["instruction.md", "environment/notes.txt"])
def test_the_answer_in_sight_is_refused(bundle, name):
    expected = (bundle / "tests/expected.txt").read_text().strip()
    with (bundle / name).open("a") as file:
        file.write(f"Psst: {expected}\n")
    line = (bundle / name).read_text().count("\n")
    assert f"answer of the call shown stands in {name}:{line}" in refused(bundle, "leak")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("shop.py", SOURCE, "environment/shop.py: is the hidden file solution/source/shop.py"),
        ("hint.txt", "1\n" + RETURN, "environment/hint.txt:2: shows 100% of shop.tag"),
        ("Dockerfile", "FROM x\nRUN pip install shop\n", "environment/Dockerfile:2: installs shop"),
        ("Dockerfile", "FROM x\nCOPY tests /t\n", "environment/Dockerfile:2: copies tests/"),
    ],
)
def test_the_source_in_sight_is_refused(bundle, name, text, told):
    (bundle / "environment" / name).write_text(text)
    assert told in refused(bundle, "leak")


def test_an_answer_that_is_right_when_empty_would_be_refused(bundle, monkeypatch):
    from palestra.types import Score
    from palestra.verify.answer import LiteralAnswer

    monkeypatch.setattr(LiteralAnswer, "compare", lambda self, answer, expected: Score(1.0))
    assert "empty answer scores on 100.0%" in refused(bundle, "null")


def test_a_grader_that_fails_refuses_the_bundle(bundle, monkeypatch):
    from palestra.types import Unscored
    from palestra.verify.answer import LiteralAnswer

    monkeypatch.setattr(LiteralAnswer, "compare", lambda self, answer, expected: Unscored("broken"))
    assert "scores 1 on 0 of" in refused(bundle, "gold")


def test_a_sandbox_that_fails_is_held_against_nobody(bundle, monkeypatch):
    from palestra.errors import SandboxError

    check([bundle])

    async def broken(*args, **settings):
        raise SandboxError("no namespaces today")

    monkeypatch.setattr("palestra.gate.replay.run_calls", broken)
    (report,) = check([bundle])
    assert report.verdict == "void" and report.reason == "no namespaces today"
    assert (bundle / "certificate.json").exists()


def test_what_is_no_bundle(bundle, tmp_path):
    (bundle / "solution/solve.sh").unlink()
    (report,) = check([bundle])
    assert report.verdict == "refused" and "solve.sh missing" in report.reason
    with pytest.raises(BundleError, match="no such folder"):
        check([tmp_path / "absent"])


def test_a_full_disk_leaves_no_half_certificate(bundle, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OutputError, match=r"certificate cannot be written.*No space left on device"):
        check([bundle])
    assert [entry.name for entry in bundle.parent.iterdir()] == ["shop.tag"]
    assert not (bundle / "certificate.json").exists()


def test_progress_and_order_over_a_folder(forged, tmp_path):
    for name in ("b", "a", "c"):
        shutil.copytree(forged, tmp_path / name)
    (tmp_path / "b/solution/source/shop.py").write_text("1 / 0\n")
    steps = []
    # The three are alike, which the quick level does not look at.
    reports = check([tmp_path], config=GateConfig(level="quick"), progress=lambda *step: steps.append(step))
    assert [report.verdict for report in reports] == ["admitted", "refused", "admitted"]
    assert [step[:2] for step in steps] == [(1, 3), (2, 3), (3, 3)]


def test_settings_cannot_ask_for_less_than_the_least():
    with pytest.raises(ValueError, match="200"):
        GateConfig(draws=100)
    with pytest.raises(ValueError, match="5"):
        GateConfig(processes=2)
