"""palestra forge, and what it prints."""

import json
import signal
import subprocess
import sys
import time

import pytest


def palestra(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "palestra.cli.main", *arguments], capture_output=True, text=True, cwd=cwd, timeout=120
    )


SOURCE = '''
def back(text):
    """>>> back("abcd")"""
    return text[::-1] + "."


def apply(f):
    """>>> apply(len)"""
'''


@pytest.fixture
def source(tmp_path):
    (tmp_path / "turn.py").write_text(SOURCE)
    return "./turn.py"


def test_json_is_one_object_and_progress_is_lines_on_stderr(source, tmp_path):
    ran = palestra("forge", "code", source, "--out", "envs", "--cases", "200", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert [function["symbol"] for function in said["forged"]] == ["turn.back"]
    assert said["reasons"] == {"takes functions or other objects as arguments": 1}
    (line,) = ran.stderr.splitlines()
    assert line.startswith("forge 1/1 ") and line.endswith("turn.back: 200 problems")
    assert (tmp_path / "envs/turn.back/task.toml").is_file()


def test_text_counts_what_was_left_out(source, tmp_path):
    ran = palestra("forge", "code", source, "--out", "envs", "--cases", "200", cwd=tmp_path)
    assert "turn.back  200 problems" in ran.stdout and "left out: 1 × takes functions" in ran.stdout
    assert "next: palestra gate check envs" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["inflecton", "--out", "envs"], "did you mean inflection?"),
        (["./turn.py", "--out", "turn.py"], "not written by palestra forge"),
        (["./turn.py", "--out", "/proc/nowhere/envs"], "cannot be written"),
        (["./turn.py", "--out", "envs", "--kind", "predikt"], "did you mean predict?"),
        (["./absent.py", "--out", "envs"], "must be a Python file"),
    ],
)
def test_bad_input_is_one_sentence_and_two(source, arguments, told, tmp_path):
    ran = palestra("forge", "code", *arguments, "--json", cwd=tmp_path)
    assert ran.returncode == 2
    assert told in json.loads(ran.stdout)["error"] and len(ran.stderr.splitlines()) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["turn.py"]


def test_an_interrupt_leaves_nothing(tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1000)\n")
    command = [sys.executable, "-m", "palestra.cli.main", "forge", "code", "./slow.py", "--out", "envs"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [entry.name for entry in tmp_path.iterdir() if "partial" in entry.name], "the forge never began"
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)
    assert running.returncode != 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["slow.py"]


@pytest.mark.parametrize(
    "noun", [["forge", "code"], ["gate", "check"], ["gate", "verify"], ["env", "list"], ["env", "show"]]
)
def test_help_shows_an_example(noun):
    ran = palestra(*noun, "--help")
    assert ran.returncode == 0 and f"Example: palestra {' '.join(noun)}" in ran.stdout
