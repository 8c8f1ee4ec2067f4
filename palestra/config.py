"""Settings: frozen pydantic models, read from TOML, overridden by ``key=value``; an unknown key is an error."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from palestra.errors import ConfigError, nearest


class Config(BaseModel):
    """Base of every settings model: frozen, unknown keys refused, defaults checked too."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)


C = TypeVar("C", bound=Config)


def load_config(kind: type[C], path: Path | None = None, overrides: Iterable[str] = ()) -> C:
    """Settings of ``kind`` from the TOML at ``path`` (optional), then ``overrides`` of the form ``a.b=value``.

    A value is read as TOML where it parses as TOML (``3``, ``true``, ``[1, 2]``) and as a plain string otherwise.
    Raises ConfigError naming the key, the rule, what was got, and the nearest known key where one is unknown.
    """
    source = str(path) if path else "settings"
    data: dict[str, Any] = {} if path is None else read_toml(path)
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {override!r}: an override is key=value, as in --set rl.steps=50")
        _assign(data, key.split("."), _toml_value(text), override)
    return parse(kind, data, source)


def parse(kind: type[C], data: Mapping[str, Any], source: str) -> C:
    """Settings of ``kind`` from plain data. Raises ConfigError that begins with ``source`` and names the key."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_first_problem(kind, error)}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The TOML at ``path``; ConfigError where it is missing, not text, or not TOML (with the line)."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: must be UTF-8 text, got byte {error.object[error.start]:#04x} at {error.start}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return text


def _assign(data: dict[str, Any], keys: list[str], value: Any, override: str) -> None:
    for key in keys[:-1]:
        data = data.setdefault(key, {})
        if not isinstance(data, dict):
            raise ConfigError(f"--set {override!r}: {key!r} is a value, not a table")
    data[keys[-1]] = value


def _first_problem(kind: type[Config], error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {where!r}: {nearest(str(problem['loc'][-1]), _keys_at(kind, problem['loc'][:-1]))}"
    if problem["type"] == "missing":
        return f"key {where!r} is required"
    return f"key {where!r}: {problem['msg'][:1].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def _keys_at(kind: type[Config], path: Iterable[int | str]) -> Mapping[str, Any]:
    fields = kind.model_fields
    for part in path:
        inner = fields[str(part)].annotation if str(part) in fields else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return {}
        fields = inner.model_fields
    return fields
