"""The report of a main job: report.json for programs, report.html for people.

Everything that the seed fixes stands outside ``measured``; ``fingerprint`` is a hash of that part, so two runs of one
seed on one machine can be compared at a glance.
"""

from __future__ import annotations

import hashlib
import json
import platform
import resource
from importlib import metadata
from itertools import islice
from math import exp
from pathlib import Path
from typing import Any

from palestra import __version__
from palestra.evals.runner import GREEDY_STEP
from palestra.files import atomic_write
from palestra.quickstart.job import Job
from palestra.store import Store
from palestra.types import Trajectory

SAMPLES = 20
TIMED = ("rollout_s", "update_s", "rollouts_per_s", "tokens_per_s")
"""Metrics that measure this machine, not the run."""
WATCHED = ("torch", "numpy", "pydantic", "sqlalchemy")


def write_report(job: Job) -> dict[str, Any]:
    """Write both files into the job's folder; returns what report.json holds."""
    from palestra.quickstart.page import render

    with Store.open(job.database) as store:
        report = collect(job, store)
    atomic_write(job.out / "report.json", (json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode())
    atomic_write(job.out / "report.html", render(report).encode())
    return report


def summary(job: Job, report: dict[str, Any]) -> dict[str, Any]:
    """The one JSON object that the command prints."""
    return {
        "admitted": report["result"]["admitted"],
        "refused": report["result"]["refused"],
        "warm": report["result"]["warm"],
        "rl": report["result"]["rl"],
        "seconds": report["measured"]["seconds"],
        "report": str(job.out / "report.html"),
        "fingerprint": report["fingerprint"],
    }


def collect(job: Job, store: Store) -> dict[str, Any]:
    results = {name: phase["result"] for name, phase in job.done.items()}
    seconds = {name: round(phase["seconds"], 2) for name, phase in job.done.items()}
    seconds["total"] = round(sum(seconds.values()), 2)
    curves = {name: store.metrics(results[name]["run"]) for name in ("warm", "rl")}
    seeded = {
        "schema": 1,
        "result": {
            "admitted": len(results["gate"]["admitted"]),
            "refused": len(results["gate"]["bundles"]) - len(results["gate"]["admitted"]),
            "warm": _evaluation(results["eval_warm"]),
            "rl": _evaluation(results["eval_rl"]),
        },
        "environments": _environments(results, job.out / "envs"),
        "left_out": results["forge"]["left_out"],
        "curves": {name: [[step, _untimed(values)] for step, values in curve] for name, curve in curves.items()},
        "samples": _samples(store, results["eval_warm"]["run"], results["eval_rl"]["run"]),
        "counts": {k: v for k, v in store.counts().items() if k != "tokens_stored"},
        "settings": job.settings.model_dump(mode="json"),
        "versions": _versions(),
    }
    canonical = json.dumps(seeded, sort_keys=True, ensure_ascii=False)
    return {
        **seeded,
        "fingerprint": hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "measured": {
            "seconds": seconds,
            "pace": {name: _pace([values for _, values in curve]) for name, curve in curves.items()},
            "peak_memory_mib": _peak_memory_mib(),
            "machine": f"{platform.machine()}, {platform.system()} {platform.release()}",
            "out": str(job.out),
        },
    }


def _evaluation(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "run"}


def _untimed(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name not in TIMED}


def _pace(steps: list[dict[str, float]]) -> dict[str, float]:
    """Medians over the run of what measures the machine."""
    return {
        name: sorted(found)[len(found) // 2]
        for name in TIMED
        if (found := [values[name] for values in steps if name in values])
    }


def _environments(results: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Each environment: its problems, the gate's verdict and checks in words, its accuracy before and after."""
    before, after = results["eval_warm"]["by_env"], results["eval_rl"]["by_env"]
    return [
        {
            "id": bundle["id"],
            "verdict": bundle["verdict"],
            "reason": bundle["reason"],
            "bundle_sha256": bundle["bundle_sha256"],
            "checks": [{key: check[key] for key in ("name", "passed")} for check in bundle["checks"]],
            **results["forge"]["forged"].get(bundle["id"], {}),
            "before": before.get(bundle["id"]),
            "after": after.get(bundle["id"]),
        }
        for bundle in results["gate"]["bundles"]
    ]


def _samples(store: Store, before: str, after: str) -> list[dict[str, Any]]:
    """The same held-out tasks answered greedily before and after, the first of the evaluation."""
    pairs = zip(store.groups(before, step=GREEDY_STEP), store.groups(after, step=GREEDY_STEP), strict=True)
    return [
        {
            "environment": was.task.env,
            "task": was.task.messages[-1].content,
            "gold": str(was.task.facts.get("expected", "")),
            "before": _answer(was.trajectories[0]),
            "after": _answer(now.trajectories[0]),
        }
        for was, now in islice(pairs, SAMPLES)
    ]


def _answer(trajectory: Trajectory) -> dict[str, Any]:
    """What was said and what it scored; ``confidence`` is the probability of the whole answer under the policy."""
    logprobs = [value for turn in trajectory.turns for value in turn.completion.logprobs or ()]
    said = trajectory.transcript[-1].content if trajectory.turns else ""
    return {
        "text": said,
        "score": trajectory.reward,
        "status": trajectory.status.value,
        "confidence": exp(sum(logprobs)),
    }


def _versions() -> dict[str, str]:
    found = {"palestra": __version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in WATCHED}


def _peak_memory_mib() -> float:
    """The largest resident set of this process, and of any one child, MiB; the greater of the two."""
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(max(peaks) / 1024, 1)
