"""Short ways to grade in a test."""

from palestra.types import Message, Outcome, Score, Task


def task(facts=None, id="t"):
    return Task(id, "e", "train", 0, (Message("user", "do it"),), facts or {})


def left(files):
    """The outcome of an agent that left these files."""
    return Outcome((), {name: data.encode() if isinstance(data, str) else data for name, data in files.items()})


async def scored(grader, files, facts=None):
    """The score; an unscored grading fails the test."""
    score = await grader.grade(task(facts), left(files))
    assert isinstance(score, Score), score
    return score
