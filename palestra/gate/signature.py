"""Ed25519 signatures of certificates: who ran the gate, where the content hash only says on what.

The signature is over the certificate's canonical JSON (``canonical``) without its ``signature`` key, which holds
``algorithm`` "ed25519", ``public_key`` and ``value``, both as lower-case hexadecimal. Keys are PEM files. Needs the
package cryptography."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palestra.errors import ConfigError, GateError, OutputError, boundary
from palestra.gate.canonical import NotCanonical, canonical

ALGORITHM = "ed25519"
SIGNATURE = "signature"


def make_key(path: Path) -> str:
    """Write a new private key to ``path``, for its owner's eyes, and the public one to ``path``.pub; the public key.

    Raises OutputError where a file of either name exists or cannot be written: a key is never replaced."""
    ed25519, serialization = _cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    with boundary(OutputError, "the key cannot be written"):
        for file, data, mode in ((path, private, 0o600), (_public(path), public, 0o644)):
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
    return _hex(key.public_key())


def signed(certificate: Mapping[str, Any], key: Path) -> dict[str, Any]:
    """The certificate with a signature by the private key in file ``key``, in place of one that it had."""
    _, serialization = _cryptography()
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), password=None)
        value = private.sign(_message(certificate))
    except OSError as error:
        raise ConfigError(f"{key}: the key cannot be read: {error.strerror}; palestra gate key makes one") from None
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"{key}: is no Ed25519 private key without a password, in PEM") from None
    stands = {"algorithm": ALGORITHM, "public_key": _hex(private.public_key()), "value": value.hex()}
    return {**certificate, SIGNATURE: stands}


def signer(certificate: Mapping[str, Any]) -> str | None:
    """The public key that signed the certificate; None where nobody did. Raises GateError for a signature that does not
    hold: the certificate was changed afterwards."""
    if SIGNATURE not in certificate:
        return None
    ed25519, _ = _cryptography()
    try:
        stands = certificate[SIGNATURE]
        if set(stands) != {"algorithm", "public_key", "value"} or stands["algorithm"] != ALGORITHM:
            raise ValueError
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(stands["public_key"]))
        public.verify(bytes.fromhex(stands["value"]), _message(certificate))
    except Exception:  # cryptography's InvalidSignature is no ValueError; whatever it is, the signature does not hold
        raise GateError("its signature does not hold: the certificate was changed after it was signed") from None
    return _hex(public)


def public_key(path: Path) -> str:
    """The public key in a PEM file, as ``signer`` gives it. Raises ConfigError."""
    ed25519, serialization = _cryptography()
    try:
        key = serialization.load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: the key cannot be read: {error.strerror}") from None
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise ConfigError(f"{path}: is no Ed25519 public key in PEM; palestra gate key makes one, named .pub")
    return _hex(key)


def _message(certificate: Mapping[str, Any]) -> bytes:
    try:
        return canonical({name: value for name, value in certificate.items() if name != SIGNATURE})
    except NotCanonical as error:
        raise GateError(f"the certificate cannot be signed: {error}") from None


def _public(path: Path) -> Path:
    return path.with_name(path.name + ".pub")


def _hex(key: Any) -> str:
    return str(key.public_bytes_raw().hex())


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        raise ConfigError(
            "signatures need cryptography, which is not installed; pip install 'palestra[sign]'"
        ) from None
    return ed25519, serialization
