"""The disk format, and what loading insists on."""

import asyncio
import itertools
import json

import pytest

from palestra.envs.bundle import (
    content_hash,
    find_bundles,
    load_environment,
    read_cases,
    read_certificate,
    read_facts,
)
from palestra.envs.splits import split_of
from palestra.errors import BundleError, ConfigError, GateError, TaskError
from palestra.models.scripted import scripted
from palestra.rollouts.run import RolloutPlan, roll_out
from palestra.store import Store
from palestra.types import Action, Message, Score

TOML = """
schema_version = "1.4"
[metadata.palestra]
schema = 1
forge = "code"
kind = "predict"
package = "toy"
version = "1.0"
licence = "MIT"
symbol = "toy.double"
module = "toy"
iterates = false
source_sha256 = "00"
seed = 0
prompt_bytes = 48
answer_bytes = 32
rel_tol = 1e-9
[metadata.palestra.splits]
train = {train}
validation = {validation}
heldout = {heldout}
"""


@pytest.fixture
def bundle(tmp_path):
    path = tmp_path / "toy.double"
    for folder in ("environment", "solution", "tests"):
        (path / folder).mkdir(parents=True)
    calls = [f"toy.double({number})" for number in range(200)]
    cases = [
        {"call": call, "expected": str(2 * number), "split": split_of(call), "source": "generated"}
        for number, call in enumerate(calls)
    ]
    counts = {split: sum(case["split"] == split for case in cases) for split in ("train", "validation", "heldout")}
    (path / "task.toml").write_text(TOML.format(**counts))
    (path / "instruction.md").write_text("Predict.\n")
    (path / "environment/Dockerfile").write_text("FROM python:3-slim\n")
    (path / "solution/solve.sh").write_text("true\n")
    (path / "tests/test.sh").write_text("true\n")
    (path / "tests/cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def certify(path, **changes):
    data = {"bundle_sha256": content_hash(path), "checks": [{"name": "gold", "passed": True}], **changes}
    (path / "certificate.json").write_text(json.dumps(data))


def test_the_hash_sees_every_byte_name_and_mode_but_not_the_certificate(bundle):
    first = content_hash(bundle)
    certify(bundle)
    assert content_hash(bundle) == first
    seen = {first}
    changes = (
        lambda: (bundle / "instruction.md").write_text("Predict!\n"),
        lambda: (bundle / "tests/test.sh").chmod(0o755),
        lambda: (bundle / "tests/test.sh").rename(bundle / "tests/other.sh"),
        lambda: (bundle / "environment/extra").write_text(""),
    )
    for change in changes:
        change()
        seen.add(content_hash(bundle))
    assert len(seen) == 5


def test_the_hash_is_of_where_bytes_stand_not_of_their_sequence(bundle, tmp_path):
    (bundle / "environment/a").write_text("xy")
    (bundle / "environment/b").write_text("z")
    one = content_hash(bundle)
    (bundle / "environment/a").write_text("x")
    (bundle / "environment/b").write_text("yz")
    assert content_hash(bundle) != one


def test_a_link_is_refused(bundle):
    (bundle / "environment/link").symlink_to("/etc/passwd")
    with pytest.raises(BundleError, match="plain files"):
        content_hash(bundle)


def test_a_file_that_cannot_be_read_is_named(bundle, monkeypatch):
    def unreadable(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.read_bytes", unreadable)
    with pytest.raises(BundleError, match=r"cannot be read.*Permission denied"):
        content_hash(bundle)


def test_loading_needs_a_certificate_about_these_bytes(bundle):
    with pytest.raises(GateError, match=r"no certificate.*palestra gate check"):
        load_environment(bundle)
    certify(bundle)
    assert load_environment(bundle).spec.version == content_hash(bundle)
    (bundle / "instruction.md").write_text("Predict, please.\n")
    with pytest.raises(GateError, match=r"void.*palestra gate check"):
        load_environment(bundle)
    assert load_environment(bundle, allow_uncertified=True).spec.id == "toy.double"


@pytest.mark.parametrize("checks", [[], [{"name": "gold", "passed": False}], [{"name": "gold", "passed": 1}]])
def test_a_certificate_must_say_that_all_passed(bundle, checks):
    certify(bundle, checks=checks)
    with pytest.raises(GateError, match="every check"):
        read_certificate(bundle)


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"bundle_sha256": 1, "checks": 7}'])
def test_what_is_no_certificate(bundle, text):
    (bundle / "certificate.json").write_text(text)
    with pytest.raises(GateError, match="is not a certificate"):
        read_certificate(bundle)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('kind = "predict"', 'kind = "juggle"', "unknown key 'package'"),
        ("schema = 1", "schema = 9", "got 9"),
        ("iterates = false", 'iterates = "perhaps"', "iterates"),
        ('symbol = "toy.double"', "", "symbol"),
        ("schema_version", "= broken", "not readable as TOML"),
    ],
)
def test_what_is_no_bundle_of_ours(bundle, old, new, told):
    file = bundle / "task.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(BundleError, match=told):
        read_facts(bundle)


def test_without_facts_of_ours_it_is_a_task_of_harbor(bundle):
    file = bundle / "task.toml"
    file.write_text(file.read_text().replace("[metadata.", "[elsewhere.") + "[verifier]\ntimeout_sec = 60\n")
    facts = read_facts(bundle)
    assert (facts.id, facts.kind, facts.spec.kind, facts.spec.timeout_s) == ("toy.double", "harbor", "command", 60.0)


def test_a_missing_part_is_named(bundle):
    (bundle / "tests/test.sh").unlink()
    with pytest.raises(BundleError, match=r"tests/test\.sh missing"):
        read_facts(bundle)


@pytest.mark.parametrize("line", ["", "7", "{}", "nonsense", '{"call": "f(1)"}'])
def test_a_line_that_is_no_case_is_named(bundle, line):
    (bundle / "tests/cases.jsonl").write_text(line + "\n")
    with pytest.raises(BundleError, match=r"cases\.jsonl:1"):
        read_cases(bundle)


def test_bundles_are_found_one_level_below(bundle, tmp_path):
    assert find_bundles([bundle]) == find_bundles([tmp_path]) == [bundle]
    with pytest.raises(BundleError, match="no such folder"):
        find_bundles([tmp_path / "absent"])
    with pytest.raises(BundleError, match="holds no bundle"):
        find_bundles([bundle / "tests"])


def test_train_never_ends_and_repeats_nothing_within_a_round(bundle):
    environment = load_environment(bundle, allow_uncertified=True)
    size = environment.spec.splits["train"]
    tasks = list(itertools.islice(environment.tasks("train", 3), 2 * size))
    first, second = tasks[:size], tasks[size:]
    assert len({task.id for task in first}) == size
    assert {task.id for task in first} == {task.id for task in second} and first != second
    assert first == list(itertools.islice(environment.tasks("train", 3), size))
    assert first != list(itertools.islice(environment.tasks("train", 4), size))


def test_other_splits_end_and_are_disjoint(bundle):
    environment = load_environment(bundle, allow_uncertified=True)
    drawn = {split: {task.id for task in environment.tasks(split, 0)} for split in ("validation", "heldout")}
    drawn["train"] = {t.id for t in itertools.islice(environment.tasks("train", 0), environment.spec.splits["train"])}
    assert {split: len(ids) for split, ids in drawn.items()} == dict(environment.spec.splits)
    assert len(set.union(*drawn.values())) == 200
    with pytest.raises(TaskError, match="did you mean heldout"):
        next(environment.tasks("heldoot", 0))


async def test_a_session_takes_one_answer_and_gold_scores_one(bundle):
    environment = load_environment(bundle, allow_uncertified=True)
    task = next(environment.tasks("heldout", 0))
    assert task.messages == (Message("user", task.messages[0].content),)
    for answer, value in ((environment.gold(task), 1.0), ("", 0.0), (task.messages[0].content, 0.0)):
        session = await environment.open(task)
        assert session.observation == task.messages
        step = await session.act(Action(Message("assistant", answer)))
        assert step.terminated and not step.truncated and step.reward == 0.0
        score = await environment.grade(task, await session.outcome())
        assert isinstance(score, Score) and score.value == value
        with pytest.raises(TaskError, match="second answer"):
            await session.act(Action(Message("assistant", answer)))


async def test_a_task_of_another_environment_is_refused(bundle):
    from dataclasses import replace

    environment = load_environment(bundle, allow_uncertified=True)
    task = replace(next(environment.tasks("train", 0)), env="toy.treble")
    with pytest.raises(TaskError, match=r"toy\.treble"):
        await environment.open(task)


def test_styles(bundle):
    instructed = load_environment(bundle, style="instructed", allow_uncertified=True)
    bare = load_environment(bundle, allow_uncertified=True)
    one, other = next(instructed.tasks("train", 0)), next(bare.tasks("train", 0))
    assert [message.role for message in one.messages] == ["system", "user"]
    assert one.id == other.id and one.messages[1:] == other.messages
    with pytest.raises(ConfigError, match="did you mean bare"):
        load_environment(bundle, style="bear", allow_uncertified=True)


def test_what_uses_an_uncertified_environment_says_so_and_keeps_it(bundle, caplog, tmp_path):
    environment = load_environment(bundle, allow_uncertified=True)
    assert "used although uncertified, as asked" in caplog.text
    assert "has no certificate" in caplog.text
    with Store.open(tmp_path / "palestra.db", create=True) as store:
        for used, why in ((environment, {"toy.double": "has no certificate"}), (certified(bundle), {})):
            report = asyncio.run(roll_out("r", [used], scripted("gold"), store, RolloutPlan(tasks=1)))
            kept = store.find_run(report.run).config["uncertified"]
            assert kept.keys() == why.keys()
            assert all(says in kept[name] for name, says in why.items())


def certified(bundle):
    certify(bundle)
    return load_environment(bundle, allow_uncertified=True)
