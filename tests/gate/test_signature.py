"""Signed certificates: they hold as long as nothing changes, and say by whom."""

import json
import os
import stat

import pytest

from palestra.envs.bundle import content_hash
from palestra.errors import ConfigError, GateError, OutputError
from palestra.gate import verify
from palestra.gate.certificate import sign, write_certificate
from palestra.gate.signature import make_key, public_key, signed, signer


@pytest.fixture
def bundle(tmp_path):
    folder = tmp_path / "set" / "one"
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text("version = '1.0'\n")
    stands = {"bundle_sha256": content_hash(folder), "checks": [{"name": "gold", "passed": True, "seconds": 0.25}]}
    write_certificate(folder, {**stands, "words": "größer ≥ 1e-7", "number": 1e-7})
    return folder


@pytest.fixture
def key(tmp_path):
    make_key(tmp_path / "gate.pem")
    return tmp_path / "gate.pem"


def only(bundle, **asked):
    [found] = verify(bundle, **asked)
    return found


def change(bundle, edit):
    file = bundle / "certificate.json"
    file.write_bytes(edit(file.read_bytes()))


def test_the_file_is_canonical_json(bundle):
    text = (bundle / "certificate.json").read_text()
    assert text.endswith('"number":1e-7,"words":"größer ≥ 1e-7"}\n') and text.count("\n") == 1
    assert only(bundle).valid and only(bundle).signed_by is None


def test_a_signature_says_who_and_holds(bundle, key):
    assert sign(bundle.parent, key) == [str(bundle)]
    found = only(bundle, signed_by=public_key(key.with_name("gate.pem.pub")))
    assert found.valid and found.signed_by == public_key(key.with_name("gate.pem.pub"))
    before = (bundle / "certificate.json").read_bytes()
    sign(bundle, key)
    assert (bundle / "certificate.json").read_bytes() == before, (
        "Ed25519 is deterministic: signing again changes nothing"
    )


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda text: text.replace(b"0.25", b"0.5"), "changed after it was signed"),
        (lambda text: text.replace(b'"value":"', b'"value":"00'), "changed after it was signed"),
        (lambda text: text.replace(b'"algorithm":"ed25519"', b'"algorithm":"none"'), "changed after it was signed"),
        (lambda text: text.replace(b":", b": ", 1), "spelt otherwise than canonical JSON"),
        (lambda text: json.dumps(json.loads(text)).encode(), "spelt otherwise"),
        (lambda text: text.replace(b'{"bundle', b'{"words":"","bundle', 1), "the key 'words' stands twice"),
        (lambda text: b"{}", "is not a certificate"),
    ],
)
def test_what_was_changed_is_void(bundle, key, edit, told):
    sign(bundle, key)
    before = (bundle / "certificate.json").read_bytes()
    change(bundle, edit)
    assert (bundle / "certificate.json").read_bytes() != before
    found = only(bundle)
    assert not found.valid and told in found.reason and str(bundle) in found.reason


def test_a_changed_bundle_is_void_and_cannot_be_signed(bundle, key):
    (bundle / "task.toml").write_text("version = '1.1'\n")
    assert "void" in only(bundle).reason
    before = (bundle / "certificate.json").read_bytes()
    with pytest.raises(GateError, match="void"):
        sign(bundle, key)
    assert (bundle / "certificate.json").read_bytes() == before


def test_another_key_or_none_is_not_the_one_asked_for(bundle, key, tmp_path):
    other = make_key(tmp_path / "other.pem")
    assert "is signed by nobody" in only(bundle, signed_by=other).reason
    sign(bundle, key)
    assert "is signed by another key" in only(bundle, signed_by=other).reason
    # A signature moved from another certificate does not hold.
    foreign = signed({"bundle_sha256": "0"}, key)["signature"]
    stands = json.loads((bundle / "certificate.json").read_text())
    with pytest.raises(GateError, match="does not hold"):
        signer({**stands, "signature": foreign})


def test_keys_are_private_and_never_replaced(key):
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(OutputError, match="File exists"):
        make_key(key)
    assert key.read_bytes() == before


@pytest.mark.parametrize(
    "text", [None, "", "nonsense", "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_key_is_told(tmp_path, text):
    file = tmp_path / "k"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=str(file)):
        signed({}, file)
    with pytest.raises(ConfigError, match=str(file)):
        public_key(file)


def test_the_wrong_half_of_a_pair_is_told(key):
    with pytest.raises(ConfigError, match="no Ed25519 private key"):
        signed({}, key.with_name("gate.pem.pub"))
    with pytest.raises(ConfigError, match="no Ed25519 public key"):
        public_key(key)
