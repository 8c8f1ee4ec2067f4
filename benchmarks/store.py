"""How fast the store keeps and gives back groups, and in how many bytes, beside a JSONL file of the same rollouts.

Four shapes: the rollouts of small RL steps (64 tasks × 8, 30 + 12 tokens), long single turns (128 + 512 tokens), and
agents of ten turns whose prompt is all that was said before and 100 or 400 new tokens. Every append is on disk (fsync)
when it returns; the JSONL is flushed and fsynced as often, and read back into the same objects.

    python benchmarks/store.py [--json FILE] [--where DIR] [--repeats 3] [--large TURNS]

--large also fills a store with that many turns of the first shape and says how long it takes to open and to look into.

Token ids are drawn from 32,000 with Zipf frequencies, log-probabilities are float32 values, as samplers report them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from palestra.store import Store
from palestra.types import Completion, Group, Message, Score, Status, Task, Trajectory, Turn, from_plain, to_plain

VOCABULARY = range(32_000)
ZIPF = list(accumulate(1 / (rank + 1) for rank in VOCABULARY))


@dataclass(frozen=True)
class Shape:
    name: str
    groups: int
    size: int
    turns: int
    prompt: int  # tokens that each turn adds before the policy speaks
    sampled: int
    per_append: int  # groups


SHAPES = (
    Shape("RL steps, one append each", 640, 8, 1, 30, 12, 64),
    Shape("RL steps, an append a group", 640, 8, 1, 30, 12, 1),
    Shape("512-token turns", 64, 8, 1, 128, 512, 8),
    Shape("512-token turns, alone", 512, 1, 1, 128, 512, 1),
    Shape("ten-turn agents, short answers", 64, 8, 10, 100, 60, 8),
    Shape("ten-turn agents, long answers", 32, 8, 10, 400, 60, 8),
)


def drawn(shape: Shape, draw: random.Random) -> list[Group]:
    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.choices(VOCABULARY, cum_weights=ZIPF, k=count))

    def rollout(id: str, task: Task, index: int, asked: tuple[int, ...], step: int) -> Trajectory:
        turns, told = [], asked
        for _ in range(shape.turns):
            ids = tokens(shape.sampled)
            singles = struct.unpack(f"{len(ids)}f", struct.pack(f"{len(ids)}f", *(-draw.expovariate(2) for _ in ids)))
            turns.append(Turn(told, Completion(ids, singles, (step,) * len(ids), "stop")))
            told = told + ids + tokens(shape.prompt)
        said = (*task.messages, Message("assistant", "answer " + str(draw.random())))
        score = Score(float(index % 2), {"exact": float(index % 2)})
        return Trajectory(f"{id}-{index}", task, index, tuple(turns), said, score, Status.FINISHED)

    made = []
    for number in range(shape.groups):
        id, step = f"{draw.getrandbits(64):016x}", number // 64
        task = Task(f"task-{number}", "bench", "train", number, (Message("user", f"f({number}) = ?"),), {"expected": 1})
        asked = tokens(shape.prompt)
        made.append(Group(id, task, step, tuple(rollout(id, task, at, asked, step) for at in range(shape.size))))
    return made


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def chunks(made: list[Group], size: int) -> list[list[Group]]:
    return [made[at : at + size] for at in range(0, len(made), size)]


def by_store(made: list[Group], shape: Shape, folder: Path) -> dict[str, float]:
    path = folder / "palestra.db"
    with Store.open(path, create=True) as store:
        run = store.begin_run("bench", "rollout", {})
        append_s, _ = timed(lambda: [store.append(run, part) for part in chunks(made, shape.per_append)])
        read_s, back = timed(lambda: list(store.groups(run)))
        assert back == made
    open_s, store = timed(lambda: Store.open(path))
    with store:
        list_s, _ = timed(store.runs)
        verify_s, problems = timed(store.verify)
    assert problems == []
    return {
        "append_s": append_s,
        "read_s": read_s,
        "open_s": open_s,
        "list_s": list_s,
        "verify_s": verify_s,
        "bytes": path.stat().st_size,
    }


def by_jsonl(made: list[Group], shape: Shape, folder: Path) -> dict[str, float]:
    path = folder / "rollouts.jsonl"

    def append(part: list[Group]) -> None:
        with path.open("a") as file:
            for group in part:
                file.write(json.dumps(to_plain(group), separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())

    append_s, _ = timed(lambda: [append(part) for part in chunks(made, shape.per_append)])
    read_s, back = timed(lambda: [from_plain(Group, json.loads(line)) for line in path.open()])
    assert back == made
    return {"append_s": append_s, "read_s": read_s, "bytes": path.stat().st_size}


def measured(shape: Shape, repeats: int, where: Path) -> dict[str, Any]:
    """Medians over repeats; both ways take turns, so that a busy neighbour disturbs both."""
    made = drawn(shape, random.Random(0))
    found: dict[str, list[dict[str, float]]] = {"store": [], "jsonl": []}
    for _ in range(repeats):
        for name, way in (("store", by_store), ("jsonl", by_jsonl)):
            with tempfile.TemporaryDirectory(dir=where) as folder:
                found[name].append(way(made, shape, Path(folder)))
    turns = shape.groups * shape.size * shape.turns
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in found.items()
    }
    return {"shape": vars(shape), "turns": turns, **medians}


def by_size(turns: int, where: Path) -> dict[str, float]:
    """Seconds to open a store of so many turns, to count it, and to find things in it; megabytes on disk."""
    shape = SHAPES[0]
    made = drawn(shape, random.Random(0))
    with tempfile.TemporaryDirectory(dir=where) as folder:
        path = Path(folder) / "palestra.db"
        with Store.open(path, create=True) as store:
            run = store.begin_run("bench", "rollout", {})
            for round in range(-(-turns // (shape.groups * shape.size))):
                for part in chunks(made, shape.per_append):
                    store.append(run, [renamed(group, round) for group in part])
        open_s, store = timed(lambda: Store.open(path))
        with store:
            return {
                "turns": store.counts()["turns"],
                "open_s": open_s,
                "runs_s": timed(store.runs)[0],
                "counts_s": timed(store.counts)[0],
                "first_50_groups_s": timed(lambda: list(islice(store.groups(run), 50)))[0],
                "one_step_s": timed(lambda: list(store.groups(run, step=5, trained=False)))[0],
                "one_trajectory_s": timed(lambda: store.trajectory(f"{made[-1].id}-r0-7"))[0],
                "mb": path.stat().st_size / 1e6,
            }


def renamed(group: Group, round: int) -> Group:
    id, step = f"{group.id}-r{round}", group.step + 10 * round
    rollouts = tuple(replace(rollout, id=f"{id}-{rollout.index}") for rollout in group.trajectories)
    return replace(group, id=id, step=step, trajectories=rollouts)


def table(results: list[dict[str, Any]]) -> str:
    head = ("shape", "turns", "append/s", "JSONL", "read/s", "JSONL", "verify/s", "B/turn", "JSONL", "ratio")
    rows = [head]
    for result in results:
        ours, theirs, turns = result["store"], result["jsonl"], result["turns"]
        rates = (ours["append_s"], theirs["append_s"], ours["read_s"], theirs["read_s"], ours["verify_s"])
        sizes = (ours["bytes"] / turns, theirs["bytes"] / turns)
        rows.append(
            (
                result["shape"]["name"],
                str(turns),
                *(f"{turns / seconds:,.0f}" for seconds in rates),
                *(f"{size:,.0f}" for size in sizes),
                f"1/{sizes[1] / sizes[0]:.1f}",
            )
        )
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return "\n".join("  ".join(map(padded, row, widths, range(len(head)))) for row in rows)


def padded(cell: str, width: int, at: int) -> str:
    return cell.ljust(width) if at == 0 else cell.rjust(width)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--where", type=Path, default=Path.cwd(), help="a folder on the disk to measure")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=0, metavar="TURNS", help="look into a store of so many turns too")
    asked = parser.parse_args()
    results = [measured(shape, asked.repeats, asked.where) for shape in SHAPES]
    print("turns per second (higher is better) and bytes per turn, medians of", asked.repeats)
    print(table(results))
    large = by_size(asked.large, asked.where) if asked.large else {}
    for name, value in large.items():
        print(f"{name:18}  {value:,.3f}")
    if asked.json:
        asked.json.write_text(json.dumps({"shapes": results, "large": large}, indent=1) + "\n")


if __name__ == "__main__":
    main()
