"""Audits of a folder, and attacks: what is written, what is resumed, what the command line says."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from palestra.cli.main import app
from palestra.gate import GateConfig
from palestra.gate.attack import attack_bundles
from palestra.gate.audit import as_html, audit, write_tables
from tests.bundles import task_bundle

QUICK = GateConfig(level="quick")
LEAKY = "#!/bin/bash\ncd /app\nif python3 /tests/check.py; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
CHECK = "import sys\nsys.path.insert(0, '/app')\nimport solution\nassert solution.f([1, 2, 3]) == 3\n"


@pytest.fixture
def folder(tmp_path):
    task_bundle(tmp_path / "set/a-sound")
    task_bundle(tmp_path / "set/b-weak", cases=[("[]", "raises(ValueError)")])
    task_bundle(tmp_path / "set/c-broken", more={"tests/cases.jsonl": "nonsense\n"})
    return tmp_path / "set"


async def test_an_audit_tells_each_bundle_and_what_refused_it(folder, tmp_path):
    found = await audit(folder, tmp_path / "state.jsonl", config=QUICK)
    assert found.counts() == {"admitted": 1, "refused": 2, "void": 0} and found.resumed == 0
    assert found.refused_by() == {"null": 1, "files": 1}
    assert [(row["id"], row["kind"]) for row in found.rows][:2] == [("a-sound", "implement"), ("b-weak", "implement")]
    write_tables(found, tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out/report.csv").open()))
    assert [row["verdict"] for row in rows] == ["admitted", "refused", "refused"]
    assert json.loads((tmp_path / "out/report.json").read_text())["refused_by"] == {"null": 1, "files": 1}
    page = (tmp_path / "out/report.html").read_text()
    assert "3 bundles: 1 admitted, 2 refused, 0 void" in page and "<script" not in page


async def test_an_audit_goes_on_where_it_was_stopped(folder, tmp_path):
    state = tmp_path / "state.jsonl"
    first = await audit(folder, state, config=QUICK)
    lines = state.read_text().splitlines()
    state.write_text("\n".join(lines[:2]) + "\n" + lines[2][:40])  # as a kill in the middle of a line leaves it
    steps: list[str] = []
    again = await audit(folder, state, config=QUICK, progress=lambda *step: steps.append(step[2]))
    assert again.resumed == 2 and len(steps) == 1
    assert [row["verdict"] for row in again.rows] == [row["verdict"] for row in first.rows]
    (folder / "a-sound/instruction.md").write_text("Now f in solution.py is told in other words.\n")
    assert (await audit(folder, state, config=QUICK)).resumed == 2
    assert (await audit(folder, state, config=GateConfig(level="quick", seed=1))).resumed == 0


async def test_weak_and_flaky_ones_are_found(tmp_path):
    task_bundle(tmp_path / "set/a", cases=[("[1, 2, 3, 4]", "7"), ("[]", "raises(ValueError)")])
    hashed = "def f(a, b=2):\n    return sorted({'a', 'b', 'c', 'd', 'e'}, key=hash)[0]\n"
    seeded = "PYTHONHASHSEED=0 python3 -c 'import sys; sys.exit()'\n"
    solve = "#!/bin/sh\n" + seeded + "cp /solution/solution.py /app/solution.py\n"
    first = "sorted({'a', 'b', 'c', 'd', 'e'}, key=hash)[0]"
    task_bundle(
        tmp_path / "set/b",
        gold=hashed,
        cases=[("[1]", repr(_under_seed_0(first)))],
        more={"solution/solve.sh": solve},
    )
    found = await audit(tmp_path / "set", tmp_path / "state.jsonl", config=GateConfig(mutants_least=0.3))
    assert [row["id"] for row in found.weakest()] == ["a"] and [row["id"] for row in found.flaky()] == ["b"]
    assert "<li>b: gold: passes" in as_html(found)


def _under_seed_0(expression):
    import subprocess
    import sys

    ran = subprocess.run(
        [sys.executable, "-c", f"print({expression}, end='')"],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        check=True,
    )
    return ran.stdout.decode()


async def test_a_grader_in_the_process_of_the_work_leaks_and_hidden_calls_do_not(tmp_path):
    grader = 'kind = "command"\n'
    task_bundle(tmp_path / "a", grader=grader, more={"tests/test.sh": LEAKY, "tests/check.py": CHECK})
    task_bundle(tmp_path / "b")
    leaky, sound = await attack_bundles([tmp_path])
    names = {one.probe.name for one in leaky.leaked}
    assert {"exit_at_import", "exit_in_call", "sys_exit", "always_equal", "mock_any"} <= names
    assert not sound.leaked and sound.plain()["blocked"] >= 35
    assert sound.plain()["blocked"] + sound.plain()["not applicable"] == len(sound.probes)


def run(*args):
    result = CliRunner().invoke(app, ["gate", *map(str, args)])
    return result.exit_code, result.stdout


def test_the_commands_and_their_exit_codes(folder, tmp_path):
    out = tmp_path / "out"
    code, text = run("report", folder, "--out", out, "--level", "quick", "--json")
    assert code == 1 and json.loads(text)["admitted"] == 1 and (out / "report.html").exists()
    code, text = run("report", folder, "--out", out, "--level", "quick", "--json")
    assert code == 1 and json.loads(text)["resumed"] == 3
    code, text = run("check", folder / "a-sound", "--level", "quick", "--json")
    assert code == 0 and json.loads(text)["bundles"][0]["checks"][3]["facts"]["runs"] == 2
    code, text = run("attack", folder / "a-sound", "--json")
    assert code == 0 and json.loads(text) | {"bundles": None} == {"bundles": None, "leaked": 0, "unfit": 0}
    code, text = run("attack", folder / "c-broken", "--json")
    assert code == 1 and "cases.jsonl:1" in json.loads(text)["bundles"][0]["reason"]
