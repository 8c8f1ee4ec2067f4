"""The phases of the main job, each once: a phase's result is on disk before the next begins, so a killed job resumes.

Every phase is the function that its own command calls. In the folder of a job: ``settings.json``, ``phases.json``
(results and seconds of the phases done), ``envs/``, ``palestra.db``, ``warm/``, ``rl/``, ``report.html``,
``report.json``.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from palestra.envs.base import Environment
from palestra.envs.bundle import load_environments
from palestra.errors import ForgeError, OutputError, StoreError
from palestra.evals.runner import EvalPlan, evaluate
from palestra.files import atomic_write
from palestra.forge.code import forge_code
from palestra.gate import check
from palestra.models.load import load_policy
from palestra.quickstart.settings import QuickstartSettings
from palestra.rollouts.run import RolloutPlan, rate_of, roll_out
from palestra.store import Store
from palestra.train.settings import TrainSettings
from palestra.train.start import step_line, train

Step = Callable[[int, int, str], None]
Progress = Callable[[str], AbstractContextManager[Step]]
SETTINGS, PHASES = "settings.json", "phases.json"


class Job:
    """One main job in folder ``out``. Results are plain data, as they are kept in ``phases.json``."""

    def __init__(self, settings: QuickstartSettings, out: Path, progress: Progress) -> None:
        self.settings, self.out, self.progress = settings, out, progress
        self.done: dict[str, dict[str, Any]] = {}

    @property
    def database(self) -> Path:
        return self.out / "palestra.db"

    def phase(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The result of phase ``name``: the stored one, or that of ``work``, stored before it is returned."""
        if name not in self.done:
            start = time.perf_counter()
            result = work()
            self.done[name] = {"seconds": time.perf_counter() - start, "result": result}
            atomic_write(self.out / PHASES, json.dumps(self.done, indent=1).encode())
        result = self.done[name]["result"]
        return dict(result)

    def run(self) -> None:
        """All phases in order, those already done skipped."""
        self.phase("forge", self._forge)
        gate = self.phase("gate", self._gate)
        admitted = [self.out / "envs" / path for path in gate["admitted"]]
        if not admitted:
            reasons = "; ".join(f"{bundle['id']}: {bundle['reason']}" for bundle in gate["bundles"][:3])
            raise ForgeError(
                f"the gate admitted none of {len(gate['bundles'])} environments ({reasons}); try another --package"
            )
        envs = load_environments(admitted)
        self.phase("gold", lambda: self._gold(envs))
        self.phase("warm", lambda: self._train("sft", admitted))
        self.phase("eval_warm", lambda: self._evaluate("warm", envs))
        self.phase("rl", lambda: self._train("rl", admitted))
        self.phase("eval_rl", lambda: self._evaluate("rl", envs))

    def _forge(self) -> dict[str, Any]:
        s = self.settings
        with self.progress("forge") as step:
            report = forge_code(s.packages, self.out / "envs", limit=s.limit, seed=s.seed, cases=s.cases, progress=step)
        forged = {
            f.symbol: {"cases": f.cases, "doctests": f.from_doctests, "outcomes": f.outcomes} for f in report.forged
        }
        return {"forged": forged, "left_out": report.reasons()}

    def _gate(self) -> dict[str, Any]:
        with self.progress("gate") as step:
            reports = check([self.out / "envs"], progress=step)
        void = [report for report in reports if report.verdict == "void"]
        if void:
            raise ForgeError(f"the gate could not work on {void[0].id}: {void[0].reason}")
        admitted = [Path(report.path).name for report in reports if report.admitted]
        return {"admitted": admitted, "bundles": [report.plain() for report in reports]}

    def _gold(self, envs: list[Environment]) -> dict[str, Any]:
        s = self.settings
        plan = RolloutPlan(tasks=s.gold_tasks, seed=s.seed)
        with Store.open(self.database, create=True) as store, self.progress("roll out") as step:
            tell = rate_of(step, s.gold_tasks)
            report = asyncio.run(roll_out("gold", envs, load_policy("scripted:gold"), store, plan, on_rollout=tell))
        return report.to_plain()

    def _train(self, method: str, admitted: list[Path]) -> dict[str, Any]:
        name = {"sft": "warm", "rl": "rl"}[method]
        settings = self.train_settings(name, admitted)
        with Store.open(self.database) as store:
            is_begun = any(run.name == name for run in store.runs())
        with self.progress({"warm": "warm start", "rl": "RL"}[name]) as step:
            report = train(settings, resume=is_begun, on_step=lambda at, of, seen: step(at, of, step_line(seen)))
        return report.to_plain()

    def train_settings(self, name: str, admitted: list[Path]) -> TrainSettings:
        """The settings of the run ``name``, "warm" or "rl": also what its recipe file would hold."""
        s = self.settings
        return TrainSettings(
            method="sft" if name == "warm" else "rl",
            name=name,
            model="native:tiny" if name == "warm" else f"native:{self.out / 'warm' / 'model'}",
            environments=tuple(admitted),
            store=self.database,
            out=self.out / name,
            seed=s.seed,
            threads=s.threads,
            sft=s.sft,
            rl=s.rl,
        )

    def _evaluate(self, name: str, envs: list[Environment]) -> dict[str, Any]:
        s = self.settings
        policy = load_policy(f"native:{self.out / name / 'model'}", threads=s.threads)
        plan = EvalPlan(
            tasks=s.eval_tasks, sampled_tasks=s.eval_sampled, k=s.k, seed=s.seed, max_tokens=s.rl.max_tokens
        )
        with Store.open(self.database) as store, self.progress("evaluate") as step:
            tell = rate_of(step, s.eval_tasks + min(s.eval_tasks, s.eval_sampled) * s.k)
            report = asyncio.run(evaluate(f"eval-{name}", envs, policy, store, plan, on_rollout=tell))
        return report.to_plain()


def open_job(settings: QuickstartSettings, out: Path, progress: Progress, *, resume: bool) -> Job:
    """A job in ``out``: with ``resume`` the one that is there, with its own settings; otherwise a new one in its place.

    Raises OutputError where ``out`` cannot be written or holds something that is no job, StoreError where there is
    nothing to resume or the settings are others.
    """
    text = json.dumps(settings.model_dump(mode="json"), indent=1)
    here = out / SETTINGS
    if resume:
        if not here.is_file():
            raise StoreError(f"{out}: no quickstart to resume here; run it without --resume")
        if here.read_text() != text:
            raise StoreError(
                f"{out}: the quickstart here has other settings (see {here}); repeat them, or leave out --resume"
            )
        job = Job(settings, out, progress)
        if (out / PHASES).is_file():
            job.done = json.loads((out / PHASES).read_text())
        return job
    if out.exists():
        if not here.is_file() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError(f"{out}: exists and is no quickstart's folder; name another with --out, or empty it")
        shutil.rmtree(out)
    atomic_write(here, text.encode())
    return Job(settings, out, progress)
