"""From source to admitted tasks: implement and repair, in sandboxes, through the gate."""

from __future__ import annotations

import asyncio
import json
import textwrap

import pytest
from typer.testing import CliRunner

from palestra.cli.main import app
from palestra.envs.bundle import content_hash, find_bundles, load_environment, read_facts
from palestra.errors import ConfigError, ForgeError
from palestra.forge.code.tasks import forge_tasks
from palestra.gate import verify
from palestra.types import Action, Message

SHOP = '''
"""A shop."""

RATES = {"book": 7, "game": 19, "cake": 0}


def rate_of(kind):
    return RATES[kind] if kind in RATES else 19


def price(net, kind="game", pieces=1):
    """The price with tax, in whole cents, for so many pieces; three and more get a tenth off.

    >>> price(100)
    119
    >>> price(100, "book", 2)
    214
    """
    if pieces < 1:
        raise ValueError("at least one")
    total = net * pieces
    if pieces >= 3:
        total = total - total // 10
    return total + total * rate_of(kind) // 100


def squeeze(text, sign=" "):
    """Runs of the sign made one.

    >>> squeeze("a  b   c")
    'a b c'
    >>> squeeze("--x--", "-")
    '-x-'
    """
    out = ""
    for char in text:
        if char != sign or not out.endswith(sign):
            out += char
    return out


def tiny(x):
    """>>> tiny(3)
    4
    """
    return x + 1


SEEN = []


def forgetful(x):
    """>>> forgetful(3)
    4
    """
    SEEN.append(x)
    if x > 2:
        return x + 1
    return x - len(SEEN) * 0


def reads(x):
    """>>> reads(3)
    4
    """
    with open("/etc/hostname") as file:
        return x + 1 + 0 * len(file.read())


def unstable(words):
    """>>> unstable(["a", "b"])
    ['a', 'b']
    """
    return list({word: hash(word) for word in words}.values())
'''


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(textwrap.dedent(SHOP))
    return folder / "shop.py"


@pytest.fixture(scope="module")
def forged(shop, tmp_path_factory):
    out = tmp_path_factory.mktemp("forged")
    made = {kind: asyncio.run(forge_tasks([str(shop)], out / kind, kind)) for kind in ("implement", "repair")}
    return out, made


async def reply(path, text):
    env = load_environment(path)
    task = next(env.tasks("train", 0))
    session = await env.open(task)
    await session.act(Action(Message("assistant", text)))
    return (await env.grade(task, await session.outcome())).value


@pytest.mark.parametrize("kind", ["implement", "repair"])
def test_what_is_written_was_admitted_and_says_where_it_is_from(forged, kind):
    out, made = forged
    report = made[kind]
    assert [task.symbol for task in report.admitted] == ["shop.price", "shop.squeeze"]
    assert report.seen == 7 and report.candidates == 7 and report.strength >= 0.9
    assert report.refused["shop.tiny"].startswith("is too small to measure")
    assert report.refused["shop.unstable"].startswith("fewer than 8 of its calls")
    assert report.refused["shop.forgetful"] == "changes the state of its module or process"
    assert report.refused["shop.reads"] == "has an effect besides its result (open)"
    assert all(result.valid for result in verify(out / kind))
    for path in find_bundles([out / kind]):
        facts = read_facts(path)
        assert facts.kind == kind and facts.metadata.provenance["package"] == "shop"
        hidden = (path / "tests/cases.jsonl").read_text().splitlines()
        assert len(hidden) >= 8 and not any(json.loads(line)["args"] in facts.instruction for line in hidden)


async def test_gold_passes_the_start_fails_and_another_right_way_passes(forged):
    out, _ = forged
    for kind in ("implement", "repair"):
        path = out / kind / f"shop.squeeze-{kind}"
        env = load_environment(path)
        assert await reply(path, env.gold(next(env.tasks("train", 0)))) == 1.0
        assert await reply(path, (path / "environment/solution.py").read_text()) == 0.0
        other = "import re\ndef squeeze(text, sign=' '):\n    again = f'({re.escape(sign)})+'\n"
        other += "    return re.sub(again, lambda _: sign, text) if sign else text\n"
        assert await reply(path, f"```python\n{other}```") == 1.0


def test_words_say_what_is_asked_and_the_file_holds_what_may_be_used(forged):
    out, _ = forged
    path = out / "implement/shop.price-implement"
    text, start = (path / "instruction.md").read_text(), (path / "environment/solution.py").read_text()
    assert text.startswith("# Write `price`") and "three and more get a tenth off" in text
    assert "It raises `ValueError`" in text and "ValueError" in text.split("Examples:")[1]
    assert "def rate_of(kind):" in start and "raise NotImplementedError" in start and "total // 10" not in start
    repair = (out / "repair/shop.price-repair/instruction.md").read_text()
    assert "> `price(" in repair and "I expected" in repair and "line" not in repair


def test_the_same_seed_gives_the_same_bundles_and_another_others(shop, tmp_path, forged):
    out, _ = forged
    asyncio.run(forge_tasks([str(shop)], tmp_path / "again", "repair"))
    hashes = [[content_hash(path) for path in find_bundles([place])] for place in (out / "repair", tmp_path / "again")]
    assert hashes[0] == hashes[1]
    asyncio.run(forge_tasks([str(shop)], tmp_path / "other", "repair", seed=5))
    assert hashes[0] != [content_hash(path) for path in find_bundles([tmp_path / "other"])]


def test_a_package_without_a_task_is_told_and_nothing_is_left(tmp_path):
    (tmp_path / "bare.py").write_text("def f(x):\n    '''>>> f(1)\n    2\n    '''\n    return x + 1\n")
    with pytest.raises(ForgeError, match=r"no task of kind 'implement' came of .*1 × is too small"):
        asyncio.run(forge_tasks([str(tmp_path / "bare.py")], tmp_path / "out", "implement"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.py"]


def test_the_command_counts_what_it_saw(shop, tmp_path):
    args = ["forge", "code", str(shop), "--kind", "implement", "--limit", "1", "--out", str(tmp_path / "o"), "--json"]
    ran = CliRunner().invoke(app, args)
    data = json.loads(ran.stdout)
    assert ran.exit_code == 0 and [task["id"] for task in data["admitted"]] == ["shop.price-implement"]
    assert (data["seen"], data["candidates"]) == (7, 7) and data["strength"] >= 0.9 and data["seconds"] > 0
    ran = CliRunner().invoke(app, ["forge", "code", str(shop), "--kind", "implment", "--out", str(tmp_path / "p")])
    assert isinstance(ran.exception, ConfigError) and "did you mean implement?" in str(ran.exception)
