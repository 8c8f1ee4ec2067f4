"""palestra sandbox and palestra doctor, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


def palestra(*args: str, stdin: str = "") -> tuple[int, str, str]:
    ran = subprocess.run(
        [sys.executable, "-m", "palestra.cli.main", *args], input=stdin, capture_output=True, text=True, timeout=60
    )
    return ran.returncode, ran.stdout, ran.stderr


def as_json(*args: str, stdin: str = "") -> tuple[int, Any]:
    code, out, _ = palestra(*args, stdin=stdin)
    return code, json.loads(out)


def test_run_prints_one_object_with_all_that_is_known() -> None:
    code, found = as_json(
        "sandbox", "run", "--timeout", "5", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3"
    )
    assert code == 1
    assert (found["exit_code"], found["stdout"], found["stderr"], found["timed_out"]) == (3, "out\n", "err\n", False)
    assert {"truncated", "usage", "protections", "limits_hit"} <= found.keys() and "seccomp" in found["protections"]


def test_run_gives_the_commands_own_flags_to_it() -> None:
    code, out, err = palestra("sandbox", "run", "--", "ls", "-A", "--color=never", "/workspace")
    assert (code, out.strip()) == (0, "") and "user-namespace" in err


def test_run_names_the_limit() -> None:
    code, found = as_json("sandbox", "run", "--timeout", "0.3", "--json", "--", "sleep", "9")
    assert (code, found["timed_out"], found["limits_hit"]) == (1, True, ["wall_s"])


def test_less_isolation_comes_only_by_name_and_says_so() -> None:
    _, found = as_json("sandbox", "run", "--backend", "process", "--json", "--", "true")
    assert found["protections"][0] == "unsafe-no-isolation"


def test_bad_input_is_one_sentence_and_exit_2() -> None:
    for args, word in (
        (("--backend", "locla", "--", "true"), "did you mean local?"),
        (("--timeout", "0", "--", "true"), "wall_s must be above 0"),
        (("--timeout", "inf", "--", "true"), "wall_s must be at most"),
        (("--memory-mib", "0", "--", "true"), "memory_mib must be above 0"),
        (("--image", "x", "--", "true"), "ask for the container back end"),
        (("--", ""), "name a program first"),
        (("--workspace", "/no/such", "--", "true"), "existing folder"),
    ):
        code, out, err = palestra("sandbox", "run", *args)
        assert code == 2 and word in err and out == "" and len(err.strip().splitlines()) == 1, err


def test_an_option_that_is_not_ours_is_no_command() -> None:
    code, out, err = palestra("sandbox", "run", "--tiemout", "5", "--", "true")
    assert (code, out) == (2, "") and "No such option: --tiemout" in err
    assert palestra("sandbox", "run", "printf", "--", "-x")[:2] == (
        0,
        "-x",
    )  # from the command on, all is the command's


def test_run_prints_what_the_command_printed_and_json_prints_nothing_else() -> None:
    code, out, err = palestra("sandbox", "run", "--", "sh", "-c", "printf 'a\\n\\n'; printf err >&2")
    assert (code, out) == (0, "a\n\n") and err.startswith("errpalestra: exit 0")
    code, out, err = palestra("sandbox", "run", "--json", "--", "sh", "-c", "echo err >&2")
    assert (code, err) == (0, "") and json.loads(out)["stderr"] == "err\n"


def test_shell_of_nothing_says_nothing() -> None:
    assert palestra("sandbox", "shell") == (0, "", "")
    assert as_json("sandbox", "shell", "--json") == (0, {"exit_code": 0})
    code, out, err = palestra("sandbox", "shell", "--backend", "process")
    assert (code, out) == (2, "") and "ask for the local back end" in err


def test_shell_keeps_its_state_between_lines() -> None:
    code, out, _ = palestra("sandbox", "shell", stdin="cd /tmp; A=1\npwd; echo $A\nexit 4\n")
    assert (code, out.strip().splitlines()) == (1, ["/tmp", "1"])


def test_check_reports_cases() -> None:
    names = ("--only", "exit-code-is-passed-through", "--only", "there-is-no-network")
    code, found = as_json("sandbox", "check", "local", *names, "--json")
    assert (code, found["passed"], found["failed"], len(found["cases"])) == (0, 2, 0, 2)
    code, found = as_json("sandbox", "check", "process", *names, "--json")
    assert (code, found["passed"], found["skipped"]) == (0, 1, 1)
    assert palestra("sandbox", "check", "local", "--only", "exit-cod")[0] == 2


def test_doctor_says_what_is_there_without_importing_torch() -> None:
    code, found = as_json("doctor", "--json")
    named = {ability["name"]: ability for ability in found["abilities"]}
    assert code == 0 and named["local sandbox"]["status"] == "yes"
    assert all(ability["status"] in ("yes", "no", "partly") for ability in named.values())
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from palestra.sandboxes.abilities import survey; survey(); print('torch' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout == "False\n"
