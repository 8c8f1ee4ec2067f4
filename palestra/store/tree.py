"""Token trees: the turns of a group as segments that share prefixes, and back, token for token.

A turn is two places in the tree: the end of its prompt and, further down, the end of its completion. A prompt that
begins with what the tree already holds adds only what is new; where it differs, the tree forks at the first differing
token. A completion is its own branch, unless an equal one (ids, log-probabilities and versions) hangs there already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from palestra.types import Completion, FinishReason, Turn

ROOT = -1


@dataclass
class Node:
    """A segment. ``logprobs`` and ``versions`` belong to sampled segments; log-probabilities may be missing there
    too."""

    parent: int
    ids: tuple[int, ...]
    is_sampled: bool = False
    logprobs: tuple[float, ...] | None = None
    versions: tuple[int, ...] | None = None


@dataclass(frozen=True)
class TurnRef:
    """A turn as places in a tree: the last node of its prompt, the last of its completion."""

    prompt: int
    completion: int
    finish_reason: FinishReason


@dataclass
class TokenTree:
    nodes: list[Node] = field(default_factory=list)
    _children: dict[int, list[int]] = field(default_factory=dict)

    def add(self, turns: Sequence[Turn]) -> list[TurnRef]:
        """Add the turns of one trajectory, in order. Raises ValueError for a turn whose lengths do not agree."""
        refs: list[TurnRef] = []
        told: tuple[int, ...] = ()
        for turn in turns:
            _check(turn)
            # A prompt that goes on from this trajectory's own last turn must follow it, not an equal-looking sibling.
            goes_on = bool(refs) and turn.prompt_ids[: len(told)] == told
            start, rest = (refs[-1].completion, turn.prompt_ids[len(told) :]) if goes_on else (ROOT, turn.prompt_ids)
            prompt = self._descend(start, rest)
            completion = self._branch(prompt, turn.completion)
            refs.append(TurnRef(prompt, completion, turn.completion.finish_reason))
            told = turn.prompt_ids + turn.completion.ids
        return refs

    def turns(self, refs: Sequence[TurnRef]) -> tuple[Turn, ...]:
        """The turns at ``refs``, equal to those that were added."""
        return tuple(self._turn(ref) for ref in refs)

    def path(self, leaf: int) -> list[int]:
        """The nodes from a root to ``leaf``."""
        found = []
        while leaf != ROOT:
            found.append(leaf)
            leaf = self.nodes[leaf].parent
        return found[::-1]

    def _turn(self, ref: TurnRef) -> Turn:
        prompt = self.path(ref.prompt)
        own = [self.nodes[at] for at in self.path(ref.completion)[len(prompt) :]]
        logprobs: tuple[float, ...] | None = ()
        for node in own:
            logprobs = None if logprobs is None or node.logprobs is None else logprobs + node.logprobs
        completion = Completion(
            ids=tuple(token for node in own for token in node.ids),
            logprobs=logprobs,
            versions=tuple(version for node in own for version in node.versions or ()),
            finish_reason=ref.finish_reason,
        )
        return Turn(tuple(token for at in prompt for token in self.nodes[at].ids), completion)

    def _descend(self, at: int, rest: tuple[int, ...]) -> int:
        """Follow ``rest`` from node ``at`` as far as the tree goes, then add what is left; the node where it ends."""
        while rest:
            child, shared = max(
                ((child, _shared(self.nodes[child].ids, rest)) for child in self._children.get(at, ())),
                key=lambda found: found[1],
                default=(ROOT, 0),
            )
            if shared == 0:
                return self._new(Node(at, rest))
            at = child if shared == len(self.nodes[child].ids) else self._split(child, shared)
            rest = rest[shared:]
        return at

    def _branch(self, at: int, completion: Completion) -> int:
        if not completion.ids and completion.logprobs is not None:
            return at  # nothing was sampled; an empty node remains only where it says "no log-probabilities"
        node = Node(at, completion.ids, True, completion.logprobs, completion.versions)
        same = (child for child in self._children.get(at, ()) if self.nodes[child] == node)
        found = next(same, None)
        return self._new(node) if found is None else found

    def _new(self, node: Node) -> int:
        self.nodes.append(node)
        self._children.setdefault(node.parent, []).append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def _split(self, at: int, length: int) -> int:
        """Cut node ``at`` after ``length`` tokens. It stays the lower part, as others may end there; returns the
        upper."""
        low = self.nodes[at]
        high = Node(
            low.parent,
            low.ids[:length],
            low.is_sampled,
            None if low.logprobs is None else low.logprobs[:length],
            None if low.versions is None else low.versions[:length],
        )
        self._children[low.parent].remove(at)
        upper = self._new(high)
        self.nodes[at] = Node(
            upper,
            low.ids[length:],
            low.is_sampled,
            None if low.logprobs is None else low.logprobs[length:],
            None if low.versions is None else low.versions[length:],
        )
        self._children[upper] = [at]
        return upper


def _check(turn: Turn) -> None:
    sampled = len(turn.completion.ids)
    for what, values in (("log-probabilities", turn.completion.logprobs), ("versions", turn.completion.versions)):
        if values is not None and len(values) != sampled:
            raise ValueError(f"{what} must match the sampled tokens: got {len(values)}, expected {sampled}")


def _shared(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many tokens two sequences share from the start."""
    short = min(len(a), len(b))
    if a[:short] == b[:short]:
        return short
    return next(at for at in range(short) if a[at] != b[at])
