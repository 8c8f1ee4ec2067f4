"""palestra gate and palestra env: exit codes and what they print."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from palestra.cli.main import app
from palestra.errors import BundleError, ConfigError, GateError
from palestra.forge.code import forge_code

SOURCE = 'def back(text):\n    """>>> back("abcd")"""\n    return text[::-1] + "."\n'


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gate_cli")
    (folder / "turn.py").write_text(SOURCE)
    forge_code([str(folder / "turn.py")], folder / "envs", cases=220)
    return folder / "envs"


@pytest.fixture
def envs(forged, tmp_path):
    return shutil.copytree(forged, tmp_path / "envs")


def palestra(*arguments):
    ran = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if ran.exception and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return ran


def test_admitted_is_zero_and_verify_agrees(envs):
    assert palestra("gate", "verify", envs).exit_code == 1
    ran = palestra("gate", "check", envs, "--json")
    said = json.loads(ran.stdout)
    assert (ran.exit_code, said["admitted"], said["refused"], said["void"]) == (0, 1, 0, 0)
    assert ran.stderr.startswith("gate 1/1 ") and ran.stderr.endswith("turn.back: admitted\n")
    verified = palestra("gate", "verify", envs / "turn.back", "--json")
    assert verified.exit_code == 0 and json.loads(verified.stdout)["valid"] == 1


def test_refused_is_one_with_the_reason(envs):
    (envs / "turn.back/solution/source/turn.py").write_text("def back(text): return text\n")
    ran = palestra("gate", "check", envs)
    assert ran.exit_code == 1 and "refused  turn.back: gold:" in ran.stdout and "0 admitted, 1 refused" in ran.stdout
    assert palestra("gate", "verify", envs).exit_code == 1


def test_settings_of_the_gate(envs):
    assert palestra("gate", "check", envs, "--set", "memory_mib=1").exit_code == 1
    with pytest.raises(ConfigError, match="did you mean draws"):
        palestra("gate", "check", envs, "--set", "drws=300")


def test_no_bundle_is_an_error(tmp_path):
    with pytest.raises(BundleError, match="holds no bundle"):
        palestra("gate", "check", tmp_path)


def test_environments_are_listed_and_shown(envs):
    listed = json.loads(palestra("env", "list", envs, "--json").stdout)["environments"]
    assert [(row["id"], row["certified"], sum(row["splits"].values())) for row in listed] == [("turn.back", False, 220)]
    shown = json.loads(palestra("env", "show", envs / "turn.back", "--count", "3", "--json").stdout)
    assert shown["symbol"] == "turn.back" and len(shown["tasks"]) == 3
    for task in shown["tasks"]:
        text = task["prompt"].removeprefix("turn.back('").removesuffix("')")
        assert task["gold"] == repr(text[::-1] + ".")


def test_signing_and_verifying_by_a_key(envs, tmp_path):
    key, other = tmp_path / "gate.pem", tmp_path / "other.pem"
    made = json.loads(palestra("gate", "key", key, "--json").stdout)
    palestra("gate", "key", other)
    with pytest.raises(GateError, match="has no certificate"):
        palestra("gate", "sign", envs, "--key", key)
    palestra("gate", "check", envs)
    assert palestra("gate", "verify", envs, "--signed-by", f"{key}.pub").exit_code == 1
    assert palestra("gate", "sign", envs, "--key", key).stdout == "1 signed\n"
    ran = palestra("gate", "verify", envs, "--signed-by", f"{key}.pub", "--json")
    assert ran.exit_code == 0 and json.loads(ran.stdout)["bundles"][0]["signed_by"] == made["public_key"]
    assert palestra("gate", "verify", envs, "--signed-by", f"{other}.pub").exit_code == 1
    with pytest.raises(ConfigError, match="no Ed25519 private key"):
        palestra("gate", "sign", envs, "--key", f"{key}.pub")
