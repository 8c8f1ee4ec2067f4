"""The command line as a whole: light to start, documented, and one sentence for every error."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from palestra.cli.main import app

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "numpy", "plotly", "sqlalchemy")


def palestra(*argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "palestra.cli.main", *argv)
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def commands(command: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    command = command or get_command(app)
    for verb, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from commands(inner, f"{name}{verb} ")
        else:
            yield f"{name}{verb}", inner


def test_every_command_has_an_example_and_json() -> None:
    found = dict(commands())
    assert {"quickstart", "doctor", "version", "forge code", "gate check", "rollout", "train", "eval"} <= found.keys()
    assert {"store ls", "store show"} <= found.keys()
    for name, command in found.items():
        assert f"Example: palestra {name}" in (command.help or ""), name
        if name != "sandbox shell":  # a terminal for a person
            assert any("--json" in parameter.opts for parameter in command.params), name


def test_help_loads_nothing_heavy() -> None:
    for argv in (["--help"], ["train", "--help"], ["quickstart", "--help"]):
        code = (
            "import sys; sys.argv = ['palestra', *" + repr(argv) + "]\n"
            "from palestra.cli.main import main\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
        )
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "Usage: " in ended.stdout
        assert ended.stderr.strip() == "[]"


def test_cli_docs_are_what_the_commands_say() -> None:
    ended = subprocess.run([sys.executable, "scripts/cli_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_version_names_what_it_stands_on() -> None:
    printed = json.loads(palestra("version", "--json").stdout)
    assert {"palestra", "python", "torch"} <= printed.keys()


def test_wrong_usage_exits_2_with_a_hint() -> None:
    ended = palestra("quikstart")
    assert ended.returncode == 2
    assert "quickstart" in ended.stderr


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("train", "missing.toml"), "missing.toml: no such file"),
        (("rollout", ".", "--model", "scripted:gold"), "no bundle"),
        (("eval", "native:nowhere", "."), "no bundle"),
        (("store", "ls"), "palestra.db: no such file"),
    ],
)
def test_errors_are_one_sentence_and_an_object_with_json(tmp_path: Path, argv: tuple[str, ...], says: str) -> None:
    ended = palestra(*argv, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.strip().splitlines()) == 1
    assert says in ended.stderr
    with_json = palestra(*argv, "--json", cwd=tmp_path)
    assert with_json.returncode == 2
    assert says in json.loads(with_json.stdout)["error"]
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_train_dry_run_prints_every_setting(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text('method = "rl"\nname = "x"\nout = "o"\nenvironments = ["e"]\n')
    ended = palestra("train", str(recipe), "--set", "rl.optimiser.lr=0.25", "--dry-run", "--json")
    printed = json.loads(ended.stdout)
    assert printed["rl"]["optimiser"]["lr"] == 0.25
    assert printed["rl"]["optimiser"]["kind"] == "adamw"
    assert printed["sft"]["optimiser"]["kind"] == "muon"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('method = "rl"\nname = "x"\nout = "o"\n', "needs environments"),
        ('method = "grpo"\nname = "x"\nout = "o"\n', "'sft' or 'rl'"),
        ('method = "sft"\nname = "x"\nout = "o"\n[sft]\nstep = 3\n', "did you mean steps"),
        ('method = "sft"\nname = "x"\n', "'out' is required"),
        ("method = \n", "not valid TOML"),
    ],
)
def test_wrong_settings_name_the_key_and_the_way_out(tmp_path: Path, text: str, says: str) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(text)
    ended = palestra("train", str(recipe), "--dry-run")
    assert ended.returncode == 2
    assert says in ended.stderr
    assert str(recipe) in ended.stderr


def test_shipped_recipes_are_valid() -> None:
    for recipe in sorted((ROOT / "recipes").glob("*.toml")):
        assert palestra("train", str(recipe), "--dry-run", "--json").returncode == 0, recipe
