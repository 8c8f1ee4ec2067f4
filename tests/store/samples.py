"""Groups to put into stores: by hand, and drawn by Hypothesis."""

import random
import struct
from dataclasses import replace

from hypothesis import strategies as st

from palestra.types import (
    Completion,
    Group,
    Message,
    Score,
    Status,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    Unscored,
)


def single(value):
    """The float32 value nearest to a float."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def task(number=0, split="train"):
    shown = (Message("user", f"predict f({number})"),)
    return Task(f"task-{number}", "env", split, number, shown, {"expected": str(number)}, 0.5)


def group(id="g0", *, step=0, size=3, number=0, split="train", prompt=range(40), seed=0):
    """One prompt, ``size`` answers of six tokens drawn from ``seed``."""
    draw = random.Random(seed)
    asked = task(number, split)

    def made(index):
        ids = tuple(draw.randrange(256) for _ in range(6))
        completion = Completion(ids, tuple(single(-draw.random()) for _ in ids), (step,) * 6, "stop")
        said = (*asked.messages, Message("assistant", f"answer {index}"))
        score = Score(float(index % 2), {"exact": float(index % 2)}, f"index {index}")
        return Trajectory(
            f"{id}-{index}", asked, index, (Turn(tuple(prompt), completion),), said, score, Status.FINISHED
        )

    return Group(id, asked, step, tuple(made(index) for index in range(size)))


tokens = st.integers(0, 3)  # few, so that prefixes meet
logprobs = st.floats(max_value=0, allow_nan=False, width=32) | st.floats(allow_nan=False)
texts = st.text(max_size=8)


def guarded(made):
    """The group, its first rollout run in a sandbox."""
    first, *rest = made.trajectories
    return replace(made, trajectories=(replace(first, protections=("seccomp", "rlimits")), *rest))


@st.composite
def completions(draw):
    ids = tuple(draw(st.lists(tokens, max_size=4)))
    known = draw(st.booleans())
    probabilities = tuple(draw(st.lists(logprobs, min_size=len(ids), max_size=len(ids)))) if known else None
    versions = tuple(draw(st.lists(st.integers(-1, 2), min_size=len(ids), max_size=len(ids))))
    return Completion(ids, probabilities, versions, draw(st.sampled_from(["stop", "length", "cancelled"])))


@st.composite
def conversations(draw):
    """Turns that go on from all that was said, from a part of it, or from nothing of it."""
    turns, said = [], ()
    for _ in range(draw(st.integers(0, 4))):
        kept = draw(st.sampled_from([len(said), len(said), draw(st.integers(0, len(said)))]))
        prompt = said[:kept] + tuple(draw(st.lists(tokens, max_size=4)))
        turns.append(Turn(prompt, draw(completions())))
        said = prompt + turns[-1].completion.ids
    return tuple(turns)


messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.text(st.characters(), max_size=8) | st.just("\ud800 alone"),
    st.lists(st.builds(ToolCall, texts, texts, texts), max_size=2).map(tuple),
    st.none() | texts,
)
shares = st.floats(0, 1)
scores = st.builds(Score, shares, st.dictionaries(texts, shares, max_size=2), texts) | st.builds(Unscored, texts)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def groups(draw, id):
    asked = Task(
        draw(texts),
        draw(texts),
        draw(st.sampled_from(["train", "validation", "heldout"])),
        draw(st.integers(0, 9)),
        tuple(draw(st.lists(messages, max_size=2))),
        draw(st.dictionaries(texts, plain, max_size=2)),
        draw(st.none() | shares),
    )

    def made(index):
        said = tuple(draw(st.lists(messages, max_size=2)))
        fault = draw(st.none() | texts)
        status = draw(st.sampled_from(Status))
        guards = tuple(draw(st.lists(st.sampled_from(["seccomp", "rlimits"]), max_size=2)))
        turns = draw(conversations())
        return Trajectory(f"{id}-{index}", asked, index, turns, said, draw(scores), status, fault, 1.5, guards)

    return Group(id, asked, draw(st.integers(0, 3)), tuple(made(index) for index in range(draw(st.integers(0, 3)))))
