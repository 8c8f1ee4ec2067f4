"""An audit of many bundles: a file that grows with each one that is done, and tables of what it holds."""

from __future__ import annotations

import csv
import html
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palestra.envs.bundle import content_hash, find_bundles
from palestra.errors import BundleError, OutputError, boundary
from palestra.files import atomic_write
from palestra.gate.config import GateConfig
from palestra.gate.novelty import Prints
from palestra.gate.run import GateReport, check_bundle
from palestra.verify.parallel import Progress, each

Row = Mapping[str, Any]
COLUMNS = ("id", "kind", "verdict", "check", "seconds", "mutants", "killed", "probes", "leaked", "reason", "path")


@dataclass(frozen=True, slots=True)
class Audit:
    """rows  one per bundle, in order of path;  resumed: how many of them were known from the file"""

    rows: tuple[Row, ...]
    resumed: int

    def counts(self) -> dict[str, int]:
        found = Counter(row["verdict"] for row in self.rows)
        return {verdict: found[verdict] for verdict in ("admitted", "refused", "void")}

    def refused_by(self) -> dict[str, int]:
        """check -> how many bundles it refused, most first."""
        return dict(Counter(row["check"] for row in self.rows if row["verdict"] == "refused").most_common())

    def slowest(self, most: int = 10) -> list[Row]:
        return sorted(self.rows, key=lambda row: -row["seconds"])[:most]

    def weakest(self, most: int = 10) -> list[Row]:
        """Those whose tests kill the smallest share of mutants."""
        judged = [row for row in self.rows if row["mutants"]]
        return sorted(judged, key=lambda row: row["killed"] / row["mutants"])[:most]

    def flaky(self) -> list[Row]:
        """Those refused because the gold, or the same call, did not always give the same."""
        return [row for row in self.rows if row["flaky"]]

    def plain(self) -> dict[str, Any]:
        return {
            **self.counts(),
            "resumed": self.resumed,
            "refused_by": self.refused_by(),
            "slowest": [row["id"] for row in self.slowest()],
            "weakest": [row["id"] for row in self.weakest()],
            "flaky": [row["id"] for row in self.flaky()],
            "bundles": [dict(row) for row in self.rows],
        }


async def audit(
    folder: Path, state: Path, *, config: GateConfig | None = None, progress: Progress | None = None
) -> Audit:
    """Check every bundle in ``folder``; each result is in the file ``state`` (JSON Lines) before the next begins.

    A bundle whose content and settings stand in the file already is not checked again: an audit that was killed goes on
    where it was. Raises BundleError where the folder holds none, OutputError where the file cannot be written."""
    config, paths = config or GateConfig(), find_bundles([folder])
    known = {(row["sha256"], row["config"]): row for row in _read(state)}
    settings, prints = config.model_dump_json(), Prints(paths)
    rows: dict[Path, Row] = {}
    for path in paths:
        if (row := known.get((_hash(path), settings))) is not None and row["path"] == str(path):
            rows[path] = row
    waiting = [path for path in paths if path not in rows]
    with (
        boundary(OutputError, f"{state}: the audit's file cannot be written"),
        state.open("a", encoding="utf-8") as file,
    ):

        async def one(path: Path) -> Row:
            sha256 = _hash(path)
            row = {**_row(await check_bundle(path, config, prints)), "sha256": sha256, "config": settings}
            file.write(json.dumps(row) + "\n")
            file.flush()
            return row

        def told(row: Row) -> str:
            return f"{row['id']}: {row['verdict']}"

        for path, row in zip(waiting, await each(waiting, one, progress=progress, told=told), strict=True):
            rows[path] = row
    return Audit(tuple(rows[path] for path in paths), len(paths) - len(waiting))


def _hash(path: Path) -> str:
    try:
        return content_hash(path)
    except BundleError as error:
        return f"unreadable: {error}"


def _read(state: Path) -> Iterable[Row]:
    """The rows that a file holds; a last line that a crash cut off is none."""
    if not state.exists():
        return
    for line in state.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and {"sha256", "config", "path", *COLUMNS} <= row.keys():
            yield row


def _row(report: GateReport) -> dict[str, Any]:
    facts = {done.name: done.facts for done in report.checks}
    failed = next((done.name for done in report.checks if not done.passed), "")
    mutants, probes, golds = facts.get("mutants", {}), facts.get("probes", {}), facts.get("gold", {})
    return {
        "id": report.id,
        "kind": report.kind,
        "verdict": report.verdict,
        "check": failed or ("" if report.admitted else "files"),
        "seconds": round(report.seconds, 3),
        "mutants": mutants.get("generated", 0) - mutants.get("unscored", 0),
        "killed": mutants.get("killed", 0),
        "probes": probes.get("run", 0),
        "leaked": len(probes.get("leaked", ())),
        "flaky": failed == "determinism" or 0 < golds.get("passes", 0) < golds.get("runs", 0),
        "reason": report.reason,
        "path": report.path,
    }


def as_csv(rows: Sequence[Row]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


STYLE = """
body { font: 14px sans-serif; margin: 2em }
td, th { padding: 2px 8px; text-align: left; vertical-align: top }
.refused { background: #fdd } .void { background: #eee }
"""


def as_html(found: Audit) -> str:
    """One page without scripts and outside files."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.counts().items())
    parts = [
        f"<!doctype html><meta charset=utf-8><title>Gate report</title><style>{STYLE}</style><h1>Gate report</h1>",
        f"<p>{len(found.rows)} bundles: {counts}</p>",
        _listed("Refused by", [f"{count} × {check}" for check, count in found.refused_by().items()]),
        _listed("Slowest", [f"{row['id']}: {row['seconds']:.1f} s" for row in found.slowest()]),
        _listed(
            "Weakest tests", [f"{row['id']}: {row['killed']} of {row['mutants']} killed" for row in found.weakest()]
        ),
        _listed("Flaky", [f"{row['id']}: {row['reason']}" for row in found.flaky()]),
        "<h2>All</h2><table><tr>" + "".join(f"<th>{column}</th>" for column in COLUMNS) + "</tr>",
        *(_line(row) for row in found.rows),
        "</table>",
    ]
    return "\n".join(parts) + "\n"


def _listed(title: str, lines: Sequence[str]) -> str:
    return f"<h2>{title}</h2><ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def _line(row: Row) -> str:
    cells = "".join(f"<td>{html.escape(str(row[column]))}</td>" for column in COLUMNS)
    return f"<tr class={row['verdict']}>{cells}</tr>"


def write_tables(found: Audit, folder: Path) -> list[Path]:
    """report.json, report.csv and report.html in ``folder``. Raises OutputError."""
    texts = {
        "report.json": json.dumps(found.plain(), indent=1) + "\n",
        "report.csv": as_csv(found.rows),
        "report.html": as_html(found),
    }
    with boundary(OutputError, f"{folder}: the report cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            atomic_write(folder / name, text.encode())
    return [folder / name for name in texts]
