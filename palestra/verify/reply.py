"""Where the answer stands in what a policy said. Each gives the text of the last place, stripped, or None where there
is none; nothing is evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from palestra.types import Outcome

Extract = Callable[[str], str | None]


def last_message(outcome: Outcome) -> str:
    """The last assistant message, or nothing."""
    said = [message.content for message in outcome.transcript if message.role == "assistant"]
    return said[-1] if said else ""


def whole(text: str) -> str | None:
    """The whole reply."""
    return text.strip()


@dataclass(frozen=True, slots=True)
class Tagged:
    """Between the last <tag> and the </tag> that follows it; what is left open is no answer."""

    tag: str = "answer"

    def __call__(self, text: str) -> str | None:
        begin = text.rfind(f"<{self.tag}>")
        end = text.find(f"</{self.tag}>", begin)
        return None if begin < 0 or end < 0 else text[begin + len(self.tag) + 2 : end].strip()


@dataclass(frozen=True, slots=True)
class After:
    """What follows the last ``mark`` on its line, as in GSM8K's ``#### 42``."""

    mark: str = "####"

    def __call__(self, text: str) -> str | None:
        _, found, rest = text.rpartition(self.mark)
        return rest.partition("\n")[0].strip() if found else None


def boxed(text: str) -> str | None:
    r"""The inside of the last \boxed{…}, braces balanced; one that is never closed is no answer."""
    begin = text.rfind("\\boxed{")
    if begin < 0:
        return None
    depth = 0
    for place in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if place[0] == "{" else -1
        if depth == 0:
            return text[begin + len("\\boxed{") : begin + place.start()].strip()
    return None
