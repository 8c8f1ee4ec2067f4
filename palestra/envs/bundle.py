"""The bundle: an environment on disk, in Harbor's task layout, and its content hash.

    task.toml  instruction.md  environment/  solution/  tests/  [certificate.json]

Palestra's own facts stand under ``[metadata.palestra]`` of ``task.toml``. A ``predict`` bundle holds its cases in
``tests/cases.jsonl``, one JSON object a line: ``call``, ``expected``, ``split``, ``source`` ("doctest" or "generated").
Every other bundle is one task: ``task_facts`` reads it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palestra.envs.base import Environment
from palestra.envs.lines import read_text
from palestra.errors import BundleError, GateError, boundary

if TYPE_CHECKING:
    from palestra.envs.task_facts import TaskFacts

log = logging.getLogger(__name__)

CERTIFICATE = "certificate.json"
CASES = "tests/cases.jsonl"
REQUIRED = ("task.toml", "instruction.md", "environment", "solution/solve.sh", "tests/test.sh")
SCHEMA = 1
LARGEST_TOML = 1 << 20
FEWEST_CASES = 200
"""A bundle with fewer cannot be judged, nor trained on without learning it by heart."""


@dataclass(frozen=True, slots=True)
class Case:
    """One problem: the call as shown, the literal of its result, its split, and where its input comes from."""

    call: str
    expected: str
    split: str
    source: str


@dataclass(frozen=True, slots=True)
class PredictFacts:
    """``[metadata.palestra]`` of a predict bundle.

    symbol     public dotted name of the function; ``module`` is what to import for it
    iterates   whether its result is an iterator, shown as ``list(...)``
    rel_tol    relative tolerance of floats in answers
    """

    forge: str
    kind: str
    package: str
    version: str
    licence: str
    symbol: str
    module: str
    iterates: bool
    source_sha256: str
    seed: int
    prompt_bytes: int
    answer_bytes: int
    rel_tol: float
    splits: Mapping[str, int]

    @property
    def id(self) -> str:
        return self.symbol

    @property
    def path(self) -> str:
        """The function's name within ``module``."""
        return self.symbol[len(self.module) + 1 :]

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and after the arguments in the text of a call."""
        return (f"list({self.symbol}(", "))") if self.iterates else (f"{self.symbol}(", ")")

    def arguments(self, call: str) -> str:
        """The argument text of ``call``. Raises BundleError where it is no call of this function."""
        before, after = self.around
        if not (call.startswith(before) and call.endswith(after)):
            raise BundleError(f"{self.symbol}: a case must be a call {before}…{after}, got {call[:60]!r}")
        return call[len(before) : len(call) - len(after)]


def read_facts(path: Path) -> PredictFacts | TaskFacts:
    """The facts of the bundle at ``path``: of kind predict, or of one task.

    Raises BundleError naming the file, the rule and what was found."""
    from palestra.envs.task_facts import task_facts

    missing = [name for name in REQUIRED if not (path / name).exists()]
    if missing:
        what = "is not a bundle" if "task.toml" in missing else "is not a whole bundle"
        raise BundleError(
            f"{path}: {what}: {', '.join(missing)} missing; make one with: palestra forge code PACKAGE --out DIR"
        )
    file = path / "task.toml"
    try:
        data = tomllib.loads(read_text(file, LARGEST_TOML))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BundleError(f"{file}: not readable as TOML: {error}") from None
    metadata = data.get("metadata", {})
    facts = metadata.get("palestra") if isinstance(metadata, dict) else None
    if not isinstance(facts, dict) or facts.get("kind") != "predict":
        return task_facts(path, data)
    if facts.get("schema") != SCHEMA:
        raise BundleError(
            f"{file}: [metadata.palestra] must have schema {SCHEMA}, got {facts.get('schema')!r}; "
            "forge it again with this version"
        )
    return _as_facts(file, facts)


def _as_facts(file: Path, facts: dict[str, Any]) -> PredictFacts:
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(PredictFacts).validate_python({k: v for k, v in facts.items() if k != "schema"})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BundleError(f"{file}: [metadata.palestra] {where}: {first['msg'].lower()}; forge it again") from None


def read_cases(path: Path) -> tuple[Case, ...]:
    """Every case of the bundle at ``path``. Raises BundleError naming the line that is not a case."""
    file = path / CASES
    lines = read_text(file).splitlines()
    cases = []
    for number, line in enumerate(lines, 1):
        try:
            cases.append(Case(**json.loads(line)))
        except (ValueError, TypeError):
            raise BundleError(f"{file}:{number}: must be a JSON object of call, expected, split, source") from None
    return tuple(cases)


def content_hash(path: Path) -> str:
    """SHA-256 over every file of the bundle but the certificate, in order of path: path, executable bit, size, bytes.

    Raises BundleError on a link (what it points to is not part of the bundle) and on a file that cannot be read."""
    digest = hashlib.sha256(b"palestra bundle 1\n")
    for name, file in sorted(_files(path)):
        with boundary(BundleError, "a file of the bundle cannot be read:"):
            data = file.read_bytes()
            executable = "x" if os.stat(file).st_mode & 0o100 else "-"
        digest.update(f"{name}\0{executable}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        digest.update(data)
    return digest.hexdigest()


def _files(path: Path) -> Iterable[tuple[str, Path]]:
    for folder, folders, names in os.walk(path):
        for name in [*folders, *names]:
            file = Path(folder, name)
            if file.is_symlink() or not (file.is_file() or file.is_dir()):
                raise BundleError(
                    f"{file}: a bundle holds plain files and folders only, this is a link or a special file"
                )
        for name in names:
            relative = Path(folder, name).relative_to(path).as_posix()
            if relative != CERTIFICATE:
                yield relative, Path(folder, name)


def find_bundles(paths: Iterable[Path]) -> list[Path]:
    """Each path that is a bundle, and the bundles directly inside each path that is not, by name.

    Raises BundleError where a path holds none."""
    found: list[Path] = []
    for path in paths:
        if (path / "task.toml").exists():
            found.append(path)
            continue
        if not path.is_dir():
            raise BundleError(f"{path}: no such folder; name a bundle, or a folder of bundles")
        inside = sorted(entry for entry in path.iterdir() if (entry / "task.toml").exists())
        if not inside:
            raise BundleError(f"{path}: holds no bundle (no task.toml in it or one level below)")
        found += inside
    return found


def read_certificate(path: Path) -> dict[str, Any]:
    """The certificate of the bundle at ``path``, proved to be about these very bytes.

    Raises GateError naming the command that makes one, where it is missing, unreadable, or void."""
    way_out = f"run: palestra gate check {path}"
    file = path / CERTIFICATE
    try:
        certificate = json.loads(file.read_text(encoding="utf-8"))
        stated = certificate["bundle_sha256"]
        passed = [check["passed"] is True for check in certificate["checks"]]
    except FileNotFoundError:
        raise GateError(f"{path}: has no certificate, so nothing shows that it is sound; {way_out}") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise GateError(f"{file}: is not a certificate; {way_out}") from None
    actual = content_hash(path)
    if stated != actual:
        raise GateError(
            f"{path}: its certificate is void: it is about content {str(stated)[:12]}, "
            f"the bundle is now {actual[:12]}; {way_out}"
        )
    if not passed or not all(passed):
        raise GateError(f"{file}: does not state that every check passed; {way_out}")
    return dict(certificate)


def load_environments(
    paths: Iterable[Path], *, style: str | None = None, allow_uncertified: bool = False
) -> list[Environment]:
    """The environments of all bundles in ``paths`` (bundles, or folders of them), in the order of their ids.

    Raises BundleError where a path holds no bundle or two bundles share an id."""
    loaded: dict[str, Environment] = {}
    for path in find_bundles(paths):
        env = load_environment(path, style=style, allow_uncertified=allow_uncertified)
        if env.spec.id in loaded:
            raise BundleError(f"{path}: another bundle given is also called {env.spec.id}; give each once")
        loaded[env.spec.id] = env
    return [loaded[id] for id in sorted(loaded)]


def load_environment(path: Path, *, style: str | None = None, allow_uncertified: bool = False) -> Environment:
    """The environment of the bundle at ``path``.

    style  of a predict bundle "bare" (the call alone, the default) or "instructed" (a system message before it says
           what to answer); of a task "reply" (one message) or "shell" (the agent works in a sandbox)
    Raises BundleError where it is not a bundle, and GateError where it has no valid certificate, unless
    ``allow_uncertified``: then it is logged as a warning, and stands under "uncertified" in the spec's facts. The cases
    are read when first needed."""
    from palestra.envs.predict import PredictEnvironment
    from palestra.envs.task import TaskEnvironment

    facts = read_facts(path)
    try:
        sha256, fault = read_certificate(path)["bundle_sha256"], None
    except GateError as error:
        if not allow_uncertified:
            raise
        sha256, fault = content_hash(path), str(error)
        log.warning("palestra: used although uncertified, as asked: %s", fault)
    if isinstance(facts, PredictFacts):
        return PredictEnvironment(path, facts, sha256, style or "bare", uncertified=fault)
    return TaskEnvironment(facts, sha256, style, uncertified=fault)
