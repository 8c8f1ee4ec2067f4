"""A process to be killed: it appends groups, or checkpoints them, and says what was acknowledged, a line each.

python store_child.py append|checkpoint STORE RUN PREFIX [COUNT], or the same arguments as lines on stdin.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import count

from palestra.store import Store
from palestra.types import Completion, Group, Message, Score, Status, Task, Trajectory, Turn


def made(id: str, number: int) -> Group:
    """A group whose every value follows from its number, so that the parent can tell what must be there."""
    task = Task(f"t{number % 7}", "env", "train", number % 7, (Message("user", f"f({number % 7})"),))
    prompt = tuple(range(number % 7, number % 7 + 200))

    def one(index: int) -> Trajectory:
        ids = tuple((number * 31 + index * 7 + at) % 256 for at in range(60))
        turn = Turn(prompt, Completion(ids, tuple(-at / 64 for at in range(60)), (number,) * 60, "stop"))
        return Trajectory(f"{id}-{index}", task, index, (turn,), task.messages, Score(1.0), Status.FINISHED)

    return Group(id, task, number, tuple(one(index) for index in range(4)))


def say(*words: object) -> None:
    print(*words, flush=True)


def append(store: Store, run: str, prefix: str, numbers: Iterable[int]) -> None:
    for number in numbers:
        batch = [made(f"{prefix}-{number}-{part}", number) for part in range(3)]
        store.append(run, batch)
        for group in batch:
            say("kept", group.id, number)


def checkpoint(store: Store, run: str, prefix: str, numbers: Iterable[int]) -> None:
    """Go on after the last checkpoint, as a resumed trainer does: append, then spend what is not spent yet."""
    last = store.last_checkpoint(run)
    first = last.step + 1 if last else 0
    for number in (number + first for number in numbers):
        store.append(run, [made(f"{prefix}-{number}-{part}", number) for part in range(3)])
        unspent = [group.id for group in store.groups(run, step=number, trained=False)]
        store.commit_checkpoint(run, number, f"step-{number}", "0" * 64, unspent, {"step": number})
        say("committed", number)


def live(what: str, where: str, run: str, prefix: str, *rest: str) -> None:
    with Store.open(where) as store:
        say("ready", os.getpid())
        work = {"append": append, "checkpoint": checkpoint}[what]
        work(store, run, prefix, range(int(rest[0])) if rest else count())


def breed() -> None:
    """A life per line of stdin, in a fork (which has everything imported already); "dead" when it is over."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            live(*line.split())
            os._exit(0)
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    live(*sys.argv[1:]) if len(sys.argv) > 1 else breed()
