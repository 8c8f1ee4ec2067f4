"""Task bundles: what is read, what is refused with file and rule, and the two ways to answer one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palestra.envs.bundle import load_environment, read_facts
from palestra.envs.graders import KINDS
from palestra.envs.task import last_block
from palestra.errors import BundleError, ConfigError, PalestraError, TaskError
from palestra.types import Action, Message, Score
from tests.bundles import CALLS, GOLD, task_bundle

COMMAND = 'kind = "command"\n'
PAYS = "#!/bin/bash\ncd /logs/verifier\nif grep -q done /app/out.txt; then echo 1; else echo 0; fi > reward.txt\n"


def load(path, **settings):
    return load_environment(path, allow_uncertified=True, **settings)


async def said(env, *texts):
    """The score after the agent has said these."""
    task = next(env.tasks("train", 0))
    session = await env.open(task)
    try:
        for text in texts:
            step = await session.act(Action(Message("assistant", text)))
        assert step.terminated
        return await env.grade(task, await session.outcome()), session
    finally:
        await session.close()


async def test_a_reply_is_the_file_that_is_graded(tmp_path):
    env = load(task_bundle(tmp_path / "sum"))
    assert env.spec.max_turns == 1 and env.spec.splits == {"train": 1} and env.spec.kind == "implement"
    task = next(env.tasks("train", 3))
    assert "`f(a, b=2)`" in task.messages[0].content and "`solution.py`" in task.messages[0].content
    assert task.id == next(env.tasks("train", 4)).id and task.facts == {}
    score, _ = await said(env, f"Here it is:\n```python\n{GOLD}```\nDone.")
    assert score.value == 1.0
    score, _ = await said(env, env.gold(task))
    assert score.value == 1.0
    score, _ = await said(env, GOLD)
    assert score.value == 1.0
    score, _ = await said(env, "```python\ndef f(a, b=2): return 7\n```")
    assert score.value == 0.0


async def test_a_reply_is_given_once_and_belongs_to_its_task(tmp_path):
    env = load(task_bundle(tmp_path / "sum"))
    _, session = await said(env, "x")
    with pytest.raises(TaskError, match="no second answer"):
        await session.act(Action(Message("assistant", "y")))
    other = load(task_bundle(tmp_path / "other"))
    with pytest.raises(TaskError, match="belongs to other"):
        await env.open(next(other.tasks("train", 0)))
    assert list(env.tasks("heldout", 0)) == []


async def test_an_agent_works_in_a_shell_until_it_says_nothing_to_run(tmp_path):
    more = {"tests/test.sh": PAYS, "environment/data.txt": "seen\n"}
    env = load(task_bundle(tmp_path / "work", grader=COMMAND, more=more))
    assert env.style == "shell" and env.spec.needs_sandbox and env.spec.max_turns == 30
    task = next(env.tasks("train", 0))
    session = await env.open(task)
    try:
        step = await session.act(
            Action(Message("assistant", "Look:\n```bash\ncat data.txt; ls /tests /solution; false\n```"))
        )
        assert not step.terminated and step.info == {"exit_code": 1}
        assert {"pid-namespace", "seccomp", "network-namespace"} <= set(step.protections)
        assert step.observation[0].content.startswith("[exit code 1]\nseen\n")
        assert "cannot access '/tests'" in step.observation[0].content
        await session.act(Action(Message("assistant", "```bash\necho done > out.txt\nln -s /etc/passwd leak\n```")))
        assert (await session.act(Action(Message("assistant", "Finished.")))).terminated
        outcome = await session.outcome()
        assert set(outcome.artifacts) == {"data.txt", "out.txt"}
        assert outcome.state == {"left_out": {"leak": "is a symbolic link"}}
        score = await env.grade(task, outcome)
        assert isinstance(score, Score) and score.value == 1.0
    finally:
        await session.close()


async def test_long_output_is_cut_in_the_middle(tmp_path):
    env = load(task_bundle(tmp_path / "work", grader=COMMAND))
    session = await env.open(next(env.tasks("train", 0)))
    step = await session.act(Action(Message("assistant", "```\nseq 1 30000\n```")))
    text = step.observation[0].content
    assert "characters left out]" in text and len(text) < 11_000 and text.endswith("30000\n")
    step = await session.act(Action(Message("assistant", "```\nyes | head -c 1000000\n```")))
    assert step.observation[0].content.endswith("[more was printed than is kept]")
    await session.close()


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("no block", None),
        ("```\na\n```", "a\n"),
        ("```sh\na\n```\nand\n```python\nb\nc\n```\n", "b\nc\n"),
        ("``` not closed\na", None),
        ("text ```inline``` text", None),
    ],
)
def test_the_last_fenced_block(text, block):
    assert last_block(text) == block


def test_a_gold_that_is_a_script_is_no_message(tmp_path):
    env = load(task_bundle(tmp_path / "work", grader=COMMAND))
    with pytest.raises(TaskError, match="is a script"):
        env.gold(next(env.tasks("train", 0)))


def test_styles(tmp_path):
    path = task_bundle(tmp_path / "work", grader=COMMAND)
    with pytest.raises(ConfigError, match="more than one file"):
        load(path, style="reply")
    with pytest.raises(ConfigError, match="did you mean shell"):
        load(path, style="shel")
    assert load(task_bundle(tmp_path / "sum"), style="shell").spec.needs_sandbox


@pytest.mark.parametrize(
    ("grader", "told"),
    [
        ('kind = "cals"\n', r"kind 'cals' is unknown, did you mean calls\?"),
        ('symbol = "f"\n', "must name its kind"),
        ('kind = "calls"\n', "key 'symbol' is required"),
        (CALLS + "credits = 1\n", r"unknown key 'credits': did you mean credit\?"),
        (CALLS + 'credit = "some"\n', "'fraction' or 'all'"),
        (CALLS + "call_s = 0\n", "greater than 0"),
        (CALLS + "rules = { rel_tol = -1.0 }\n", "rel_tol must be 0 or more"),
        ('kind = "stdio"\nlanguage = "python"\ncompare = "checker"\n', r"checker\.py: is missing"),
        ('kind = "answer"\n', r"expected\.json: is missing"),
        ('kind = "answer"\nextract = "somewhere"\n', "extract"),
    ],
)
def test_a_grader_that_is_not_as_it_must_be_is_refused_by_file(tmp_path, grader, told):
    cases = (json.dumps({"stdin": "", "stdout": "x"}) + "\n") if "stdio" in grader else None
    path = task_bundle(tmp_path / "sum", grader=grader, more={"tests/cases.jsonl": cases} if cases else None)
    with pytest.raises(BundleError, match=rf"({path}).*({told})"):
        facts = read_facts(path)
        facts.spec.grader(facts.place())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "holds no case"),
        ("[1]", r"cases\.jsonl:1: must be a JSON object"),
        ("{", r"cases\.jsonl:1: is not JSON"),
        ('{"args": "1"}', r"cases\.jsonl:1: 'expected' must be a text, got nothing"),
        ('{"args": 1, "expected": "1"}', "'args' must be a text, got int"),
        ('{"args": "1", "expected": "open(1)"}', "'expected' is no value"),
        ('{"args": "1", "expected": "1"}\n{"args": "1", "expected": "("}', r"cases\.jsonl:2"),
        ("[" * 100_000, r"cases\.jsonl:1: is nested too deeply"),
        (b"\xff\xfe", "must be UTF-8 text, got byte 0xff at 0"),
    ],
)
def test_hidden_cases_that_are_none_are_refused_by_line(tmp_path, line, told):
    path = task_bundle(tmp_path / "sum", more={"tests/cases.jsonl": line})
    facts = read_facts(path)
    with pytest.raises(BundleError, match=told):
        facts.spec.grader(facts.place())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("schema = 1", "schema = 2", "must have schema 1, got 2"),
        ('kind = "implement"', 'kind = ""', "kind"),
        ('kind = "implement"', 'kind = "implement"\nsplit = "test"', "'train', 'validation' or 'heldout'"),
        ('kind = "implement"', 'kind = "implement"\nturns = 3', r"unknown key 'turns': did you mean max_turns\?"),
        ('name = "tests/sum"', "name = 3", r"\[task\] name must be a text, got 3"),
        ("[environment]\n", "[environment]\nworkdir = 1\n[other]\n", r"workdir must be a text"),
        ("[task]\n", "task = 3\n[other]\n", r"\[task\] must be a table"),
    ],
)
def test_a_task_toml_that_is_not_as_it_must_be(tmp_path, old, new, told):
    path = task_bundle(tmp_path / "sum")
    file = path / "task.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(BundleError, match=told):
        read_facts(path)


def test_large_and_linked_files_are_refused(tmp_path):
    path = task_bundle(tmp_path / "sum")
    (path / "instruction.md").write_text("x" * (1 << 19))
    with pytest.raises(BundleError, match=r"instruction\.md: has 524288 bytes, at most 262144"):
        read_facts(path)
    (path / "instruction.md").unlink()
    (path / "instruction.md").symlink_to("/etc/hostname")
    with pytest.raises(BundleError, match="is missing, or is no plain file"):
        read_facts(path)


TOML_TEXT = st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(
    ["[metadata.palestra]\n", "[metadata]\npalestra = 3\n", "metadata = 1\n", "[[metadata]]\n", "a.b.c = 1\na = 2\n"]
)


@settings(max_examples=200)
@given(toml=st.lists(TOML_TEXT, max_size=3), cases=st.binary(max_size=200), kind=st.sampled_from(sorted(KINDS)))
def test_no_bundle_file_breaks_the_reader(tmp_path_factory, toml, cases, kind):
    """Whatever stands in them: facts and a grader, or a sentence of ours."""
    path = tmp_path_factory.mktemp("fuzz") / "b"
    grader = f'kind = "{kind}"\n' + ('symbol = "f"\n' if kind == "calls" else "")
    task_bundle(path, grader=grader, more={"tests/cases.jsonl": cases, "tests/expected.json": cases})
    file = path / "task.toml"
    file.write_text(file.read_text() + "".join(toml))
    try:
        facts = read_facts(path)
        facts.spec.grader(facts.place())
    except PalestraError as error:
        assert str(path) in str(error)
