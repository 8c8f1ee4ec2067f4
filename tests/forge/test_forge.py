"""From source to bundles that load, in sandboxes."""

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

from palestra.envs.bundle import content_hash, find_bundles, load_environment, read_cases, read_facts
from palestra.envs.splits import split_of
from palestra.errors import ForgeError, OutputError
from palestra.forge.code import Budget, forge_code, run
from palestra.sandboxes import open_sandbox
from palestra.sandboxes.base import Mount
from palestra.sandboxes.interpreters import python_mounts

GOOD = '''
def join(words, mark="-"):
    """Join words.

    >>> join(["some", "words"], "_")
    'some_words'
    """
    return mark.join(words)


def runs(values):
    """The distinct ones, lazily.

    >>> list(runs([1, 1, 2, 3, 3]))
    [1, 2, 3]
    """
    last = None
    for value in values:
        if value != last:
            yield value
        last = value


def apply(function, values):
    """>>> apply(len, [1])"""


def same(value):
    """>>> same("abc")"""
    return value


def spoil(values):
    """>>> spoil([3, 1, 2])"""
    values.sort()
    return values


def nothing(values):
    """>>> nothing([3, 1, 2])"""


def opaque(values):
    """>>> opaque([3, 1, 2])"""
    return object()


def untold(thing):
    return thing
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    source = tmp_path_factory.mktemp("source") / "shop.py"
    source.write_text(GOOD)
    out = tmp_path_factory.mktemp("out") / "envs"
    steps = []
    report = forge_code([str(source)], out, cases=300, seed=5, progress=lambda *step: steps.append(step))
    return source, out, report, steps


def test_what_is_forged_and_why_the_rest_is_not(shop):
    _, out, report, steps = shop
    assert [function.symbol for function in report.forged] == ["shop.join", "shop.runs"]
    assert [function.cases for function in report.forged] == [300, 300]
    told = {
        "shop.apply": "takes functions",
        "shop.same": "return their first argument",
        "shop.spoil": "changes its arguments",
        "shop.nothing": "most of its calls have one outcome",
        "shop.opaque": "a value of type builtins.object",
        "shop.untold": "no docstring",
    }
    assert report.refused.keys() == told.keys()
    assert all(text in report.refused[symbol] for symbol, text in told.items())
    assert [path.name for path in find_bundles([out])] == ["shop.join", "shop.runs"]
    assert [step[:2] for step in steps] == [(number, 6) for number in range(1, 7)]
    assert json.loads((out / "forge.json").read_text())["seed"] == 5


def test_bundles_load_and_are_within_their_budget(shop):
    _, out, _, _ = shop
    for path in find_bundles([out]):
        environment = load_environment(path, allow_uncertified=True)
        tasks = [task for split in ("validation", "heldout") for task in environment.tasks(split, 0)]
        assert tasks and sum(environment.spec.splits.values()) == 300
        for task in tasks:
            assert len(task.messages[0].content.encode()) <= 48 and len(environment.gold(task).encode()) <= 32


def test_splits_are_disjoint_because_the_call_decides(shop):
    _, out, _, _ = shop
    for path in find_bundles([out]):
        cases = read_cases(path)
        assert len({case.call for case in cases}) == len(cases)
        assert all(case.split == split_of(case.call) for case in cases)
        assert {case.split for case in cases} == {"train", "validation", "heldout"}


def test_examples_come_along_and_iterators_are_listed(shop):
    _, out, _, _ = shop
    joined = {case.call: case for case in read_cases(out / "shop.join")}
    assert joined["shop.join(['some', 'words'], '_')"].expected == "'some_words'"
    assert joined["shop.join(['some', 'words'], '_')"].source == "doctest"
    listed = {case.call: case.expected for case in read_cases(out / "shop.runs")}
    assert listed["list(shop.runs([1, 1, 2, 3, 3]))"] == "[1, 2, 3]"
    assert read_facts(out / "shop.runs").iterates and not read_facts(out / "shop.join").iterates


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(shop, tmp_path):
    source, out, _, _ = shop
    forge_code([str(source)], tmp_path / "again", cases=300, seed=5)
    forge_code([str(source)], tmp_path / "other", cases=300, seed=6)
    hashes = [
        [content_hash(path) for path in find_bundles([folder])]
        for folder in (out, tmp_path / "again", tmp_path / "other")
    ]
    assert hashes[0] == hashes[1] and not set(hashes[0]) & set(hashes[2])


async def test_the_bundle_is_a_whole_harbor_task(shop):
    """solve.py answers the call shown, grade.py pays for that answer and for no other: what their scripts start."""
    _, out, _, _ = shop
    for path in find_bundles([out]):
        mounts = [*python_mounts(), Mount(path / "solution", Path("/solution")), Mount(path / "tests", Path("/tests"))]
        async with open_sandbox("local", mounts=mounts) as sandbox:
            python = [sys.executable, "-I", "-S"]
            solved = await sandbox.exec([*python, "/solution/solve.py", "answer.txt"])
            assert solved.exit_code == 0, solved.stderr
            for answer, reward in ((await sandbox.read("answer.txt"), b"1.0\n"), (b"", b"0.0\n"), (b"['x']", b"0.0\n")):
                await sandbox.write("answer.txt", answer)
                graded = await sandbox.exec(
                    [*python, "/tests/grade.py", "answer.txt", f"{sandbox.workspace}/reward.txt"]
                )
                assert graded.exit_code == 0, graded.stderr
                assert await sandbox.read("reward.txt") == reward
        assert os.access(path / "solution/solve.sh", os.X_OK) and os.access(path / "tests/test.sh", os.X_OK)


def test_budgets_and_limits(shop, tmp_path):
    source, _, _, _ = shop
    small = Budget(cases=250, prompt_bytes=40, answer_bytes=10)
    report = forge_code([str(source)], tmp_path / "small", limit=1, budget=small)
    assert [function.symbol for function in report.forged] == ["shop.join"]
    cases = read_cases(tmp_path / "small/shop.join")
    assert all(len(case.call) <= 40 and len(case.expected) <= 10 for case in cases)


def test_a_package_brings_along_what_it_imports(tmp_path):
    (tmp_path / "helper.py").write_text("def flip(text): return text[::-1]\n")
    (tmp_path / "unrelated.py").write_text("")
    (tmp_path / "front.py").write_text(
        'import helper\ndef back(a):\n    """>>> back("abc")"""\n    return helper.flip(a)\n'
    )
    forge_code([str(tmp_path / "front.py")], tmp_path / "out", cases=200)
    vendored = sorted(file.name for file in (tmp_path / "out/front.back/solution/source").iterdir())
    assert vendored == ["front.py", "helper.py"]


BAD = {
    "prints": ("print('hello')", "its import prints 'hello"),
    "exits": ("raise SystemExit(0)", "asked the process to exit"),
    "dies": ("import os; os._exit(0)", "ended the process"),
    "forks": ("import os; os.fork()", "os.fork"),
    "writes": ("open('x', 'w')", "open for writing"),
    "fails": ("1 / 0", "ZeroDivisionError"),
    "lacks": ("import absent_module_7", "No module named 'absent_module_7'; install that"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_package_whose_import_does_more_is_one_sentence(name, tmp_path):
    line, told = BAD[name]
    source = tmp_path / f"{name}.py"
    source.write_text(f'{line}\ndef back(a):\n    """>>> back("abc")"""\n    return a[::-1]\n')
    with pytest.raises(ForgeError) as caught:
        forge_code([str(source)], tmp_path / "out")
    assert told in str(caught.value) and name in str(caught.value) and "\n" not in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name != "__pycache__") == [source.name]


def test_a_package_whose_import_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr("palestra.verify.calls.IMPORT_S", 0.3)
    source = tmp_path / "hangs.py"
    source.write_text("import time\ntime.sleep(1000)\n")
    with pytest.raises(ForgeError, match=r"did not end within 0\.3 s"):
        forge_code([str(source)], tmp_path / "out")


def test_nothing_suitable_is_told_with_counted_reasons(tmp_path):
    source = tmp_path / "poor.py"
    source.write_text(textwrap.dedent(GOOD[GOOD.index("def apply") :]))
    with pytest.raises(ForgeError, match=r"any of its 6 public .*\(2 × gives fewer than 200 .*name another package"):
        forge_code([str(source)], tmp_path / "out")
    (tmp_path / "empty.py").write_text("x = 1\n")
    with pytest.raises(ForgeError, match="defines no public function"):
        forge_code([str(tmp_path / "empty.py")], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_ours_is_left_alone(shop, tmp_path):
    source, _, _, _ = shop
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match="not written by palestra forge"):
        forge_code([str(source)], out, cases=200)
    assert [entry.name for entry in out.iterdir()] == ["thesis.tex"]
    with pytest.raises(OutputError, match="cannot be written"):
        forge_code([str(source)], out / "thesis.tex" / "below", cases=200)


def test_an_earlier_forge_is_replaced_whole(shop, tmp_path):
    source, _, _, _ = shop
    forge_code([str(source)], tmp_path / "out", cases=200)
    (tmp_path / "out/shop.join/certificate.json").write_text("{}")
    forge_code([str(source)], tmp_path / "out", cases=200, limit=1)
    assert [path.name for path in find_bundles([tmp_path / "out"])] == ["shop.join"]
    assert not (tmp_path / "out/shop.join/certificate.json").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_leaves_nothing(shop, tmp_path, monkeypatch):
    """The disk fills up while the second bundle is written."""
    source, _, _, _ = shop
    write, written = run.write_bundle, []

    def filling(folder, forged):
        if written:
            raise OSError(28, "No space left on device", str(folder))
        written.append(folder)
        write(folder, forged)

    monkeypatch.setattr(run, "write_bundle", filling)
    with pytest.raises(OutputError, match="No space left on device"):
        forge_code([str(source)], tmp_path / "out", cases=200)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_forge_left_is_swept_and_a_living_ones_is_not(tmp_path):
    (tmp_path / ".out.partial-4194999").mkdir()  # above the largest process id of Linux
    (tmp_path / f".out.partial-{os.getppid()}").mkdir()
    (tmp_path / ".other.partial-4194999").mkdir()
    run.sweep(tmp_path / "out")
    assert sorted(e.name for e in tmp_path.iterdir()) == [".other.partial-4194999", f".out.partial-{os.getppid()}"]


def test_the_packages_of_the_quickstart(tmp_path):
    report = forge_code(["inflection"], tmp_path / "out", cases=200)
    forged = {function.symbol for function in report.forged}
    assert {"inflection.camelize", "inflection.underscore", "inflection.pluralize", "inflection.ordinalize"} <= forged
    licences = [file.name for file in (tmp_path / "out/inflection.camelize/solution/licences").iterdir()]
    assert licences == ["LICENSE"] and read_facts(tmp_path / "out/inflection.camelize").licence == "MIT"
