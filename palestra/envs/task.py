"""The environment of a task bundle: one task, its workspace, and a grader that the agent cannot reach.

Two ways to answer it. "reply": one message; the file asked for is the last fenced block of it, or the whole message
where there is none. "shell": the agent works in a sandbox; the last fenced block of each message is run there by a
shell, the output comes back, and a message without one ends the work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from palestra.envs.base import UNCERTIFIED, EnvSpec
from palestra.envs.lines import read_text
from palestra.envs.task_facts import TaskFacts
from palestra.errors import ConfigError, TaskError, nearest
from palestra.sandboxes import ExecResult, Limits, Mount, Sandbox, open_sandbox
from palestra.types import Action, Message, Outcome, Score, Step, Task, Unscored
from palestra.verify.artifacts import collect
from palestra.verify.command import harbor_env, harbor_view

STYLES = ("reply", "shell")
MOST_SHOWN = 10_000
"""Characters of a command's output that the agent is shown."""
COMMAND = Limits(wall_s=60.0, cpu_s=60.0, memory_mib=2048, processes=128, output_bytes=1 << 18)
_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_SHELL = (
    "You work in {workdir} through a shell. Write one fenced block per message; it is run by bash, and you see what it "
    "prints. Write a message without a block when you are done."
)
_REPLY = "Answer with the whole content of `{artifact}` in one fenced block."


def last_block(text: str) -> str | None:
    """The inside of the last fenced block; None where there is none."""
    found = _FENCE.findall(text)
    return found[-1] if found else None


class TaskEnvironment:
    """A finite environment: its split holds one task, every other none.

    style  "reply" or "shell"; None: "reply" where one file is graded, "shell" where more than one is"""

    def __init__(
        self, facts: TaskFacts, version: str, style: str | None = None, *, uncertified: str | None = None
    ) -> None:
        single = len(facts.spec.artifacts) <= 1 and facts.spec.artifacts != (".",)
        self.style = style or ("reply" if single else "shell")
        if self.style not in STYLES:
            raise ConfigError(f"style {style!r}: unknown, {nearest(str(style), STYLES)}")
        if self.style == "reply" and not single:
            raise ConfigError(
                f"{facts.id}: its work is more than one file, so that no reply can hold it; use style shell"
            )
        self.facts = facts
        self.spec = EnvSpec(
            id=facts.id,
            version=version,
            kind=facts.kind,
            splits={facts.metadata.split: 1},
            max_turns=1 if self.style == "reply" else facts.metadata.max_turns,
            needs_sandbox=self.style == "shell",
            facts={
                **facts.metadata.provenance,
                "style": self.style,
                **({UNCERTIFIED: uncertified} if uncertified else {}),
            },
        )

    @property
    def path(self) -> Path:
        return self.facts.path

    def tasks(self, split: str, seed: int) -> Iterator[Task]:
        while split in self.spec.splits:
            yield self.task(seed)
            if split != "train":
                return

    def task(self, seed: int = 0) -> Task:
        workdir, artifacts = self.facts.image.workdir, self.facts.spec.artifacts
        how = _SHELL.format(workdir=workdir)
        if self.style == "reply":
            how = _REPLY.format(artifact=artifacts[0]) if artifacts else ""
        shown = (Message("user", f"{self.facts.instruction.rstrip()}\n\n{how}".rstrip()),)
        metadata = self.facts.metadata
        return Task(self.spec.version[:16], self.spec.id, metadata.split, seed, shown, {}, metadata.difficulty)

    async def open(self, task: Task, sandbox: Sandbox | None = None) -> ReplySession | ShellSession:
        if task.env != self.spec.id:
            raise TaskError(f"task {task.id}: belongs to {task.env}, not to {self.spec.id}")
        if self.style == "reply":
            artifacts = self.facts.spec.artifacts
            return ReplySession(task.messages, artifacts[0] if artifacts else None)
        return ShellSession(task.messages, self.facts, sandbox or await opened(self.facts))

    def gold(self, task: Task) -> str:
        """The message that hands in ``solution/<file>``, for a task that one file answers. Raises TaskError for others:
        their gold is a script, which the gate runs."""
        artifacts = self.facts.spec.artifacts
        file = self.path / "solution" / artifacts[0] if self.style == "reply" and artifacts else None
        if file is None or not file.is_file():
            raise TaskError(
                f"{self.spec.id}: its gold is a script, solution/solve.sh, and no message; the gate runs it"
            )
        return f"```\n{read_text(file)}```"

    async def grade(self, task: Task, outcome: Outcome, sandbox: Sandbox | None = None) -> Score | Unscored:
        return await self.facts.spec.grader(self.facts.place()).grade(task, outcome, sandbox)


async def opened(facts: TaskFacts, *, solution: Path | None = None) -> Sandbox:
    """A sandbox with the task's workspace in it; with ``solution``, that folder stands at ``/solution``."""
    mounts = [*harbor_view(facts.image.workdir, facts.image.packages)]
    mounts += [Mount(solution, Path("/solution"))] if solution else []
    box = open_sandbox("local", mounts=mounts, limits=COMMAND)
    await box.__aenter__()
    try:
        for name, file in facts.image.files.items():
            await box.write(name, file.read_bytes())
    except BaseException:
        await box.close()
        raise
    return box


class ReplySession:
    """One question, one answer, which is the file."""

    def __init__(self, messages: tuple[Message, ...], artifact: str | None) -> None:
        self._transcript, self._artifact = messages, artifact

    @property
    def observation(self) -> tuple[Message, ...]:
        return self._transcript

    async def act(self, action: Action) -> Step:
        if self._transcript[-1].role == "assistant":
            raise TaskError("this session has been answered and takes no second answer; open another")
        self._transcript = (*self._transcript, action.message)
        return Step(observation=(), reward=0.0, terminated=True, truncated=False)

    async def outcome(self) -> Outcome:
        said = self._transcript[-1]
        if self._artifact is None or said.role != "assistant":
            return Outcome(self._transcript)
        block = last_block(said.content)
        text = said.content if block is None else block
        return Outcome(self._transcript, {self._artifact: text.encode("utf-8", "surrogatepass")})

    async def close(self) -> None:
        return None


class ShellSession:
    """An agent at work in a sandbox, which it owns."""

    def __init__(self, messages: tuple[Message, ...], facts: TaskFacts, sandbox: Sandbox) -> None:
        self._transcript, self._facts, self._sandbox = messages, facts, sandbox
        self._ended = False
        self._env = harbor_env(facts.image.packages, facts.image.env)

    @property
    def observation(self) -> tuple[Message, ...]:
        return self._transcript

    async def act(self, action: Action) -> Step:
        if self._ended:
            raise TaskError("this session has ended and takes no further action; open another")
        command = last_block(action.message.content)
        self._transcript = (*self._transcript, action.message)
        if command is None:
            self._ended = True
            return Step(observation=(), reward=0.0, terminated=True, truncated=False)
        ran = await self._sandbox.exec(["/bin/bash", "-c", command], env=self._env, limits=COMMAND)
        seen = Message("user", shown(ran))
        self._transcript = (*self._transcript, seen)
        info, protections = {"exit_code": ran.exit_code}, tuple(map(str, ran.protections))
        return Step((seen,), 0.0, terminated=False, truncated=False, info=info, protections=protections)

    async def outcome(self) -> Outcome:
        found = await collect(self._sandbox, self._facts.spec.artifacts or (".",))
        return Outcome(self._transcript, found.files, {"left_out": dict(found.left_out)})

    async def close(self) -> None:
        await self._sandbox.close()


def shown(ran: ExecResult) -> str:
    """What an agent is told of a command: the exit code, then the output, its middle left out where it is long."""
    text = (ran.stdout + ran.stderr).decode(errors="replace")
    if len(text) > MOST_SHOWN:
        half = MOST_SHOWN // 2
        text = f"{text[:half]}\n[{len(text) - MOST_SHOWN} characters left out]\n{text[-half:]}"
    head = "ran out of time" if ran.timed_out else f"exit code {ran.exit_code}"
    more = "\n[more was printed than is kept]" if ran.truncated else ""
    return f"[{head}]\n{text}{more}"
