"""Take secrets out of what is exported.

Token ids spell the text again, so a rollout in whose words something was found loses its turns as well: its tokens,
log-probabilities and versions are not exported, and the report counts it. Looked through are the task, the transcript,
tool calls, evidence and errors; a prompt that a harness showed the model and that is in no transcript is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from palestra.types import Group, Message, Score, Task, Trajectory, Unscored

_KEY = r"[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)"
SECRETS: Mapping[str, str] = {
    "environment variable": rf"(?<![A-Za-z0-9_])({_KEY}\s*[=:]\s*)(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s\"'\\,;]+)",
    "bearer token": r"(?i)\b(bearer\s+|x-api-key\s*[:=]\s*)[A-Za-z0-9._~+/=-]{8,}",
    "credentials in a URL": r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,20}://[^\s/:@]*:)[^\s/:@]+(?=@)",
    "API key": r"()\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|"
    r"AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|AIza[A-Za-z0-9_-]{30,})",
    "JSON web token": r"()\beyJ[A-Za-z0-9_-]{8,2000}\.[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,}",
    "private key": r"()-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
}
"""Patterns by what they find. Group 1 stays; what follows it is replaced. Repeats that may fail to match are bounded: a
policy writes the text, and could make an unbounded one search for hours."""
PERSONAL: Mapping[str, str] = {
    "e-mail address": r"()\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,255}\.[A-Za-z]{2,24}\b",
    "phone number": r"()(?<![\w.])\+\d{1,3}[ .-]?(?:\(?\d{1,4}\)?[ .-]?){2,5}\d{2,4}(?![\w.])",
}


@dataclass
class Redaction:
    """Replace what ``patterns`` find by ``[redacted: …]``; ``found`` counts by kind over all that it has seen."""

    patterns: Mapping[str, str] = field(default_factory=lambda: SECRETS)
    found: Counter[str] = field(default_factory=Counter)
    stripped: int = 0

    def __post_init__(self) -> None:
        self._compiled = {kind: re.compile(pattern) for kind, pattern in self.patterns.items()}

    def text(self, text: str) -> str:
        for kind, pattern in self._compiled.items():
            text, times = pattern.subn(lambda match, kind=kind: f"{match[1]}[redacted: {kind}]", text)  # type: ignore[misc]
            if times:
                self.found[kind] += times
        return text

    def group(self, group: Group) -> Group:
        task = self._task(group.task)
        return replace(group, task=task, trajectories=tuple(self._trajectory(t, task) for t in group.trajectories))

    def _trajectory(self, trajectory: Trajectory, task: Task) -> Trajectory:
        told = replace(
            trajectory,
            task=task,
            transcript=tuple(map(self._message, trajectory.transcript)),
            score=self._score(trajectory.score),
            error=None if trajectory.error is None else self.text(trajectory.error),
        )
        if told == trajectory or not trajectory.turns:
            return told
        self.stripped += 1
        return replace(told, turns=())

    def _task(self, task: Task) -> Task:
        return replace(task, messages=tuple(map(self._message, task.messages)), facts=self._plain(dict(task.facts)))

    def _message(self, message: Message) -> Message:
        calls = tuple(replace(call, arguments=self.text(call.arguments)) for call in message.tool_calls)
        return replace(message, content=self.text(message.content), tool_calls=calls)

    def _score(self, score: Score | Unscored) -> Score | Unscored:
        if isinstance(score, Unscored):
            return Unscored(self.text(score.reason))
        return replace(score, evidence=self.text(score.evidence))

    def _plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._plain(item) for key, item in value.items()}
        return [self._plain(item) for item in value] if isinstance(value, list) else value
