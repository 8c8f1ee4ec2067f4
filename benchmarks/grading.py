"""Gradings per second: hidden calls of a Python function, 20 a grading, against a pytest process per grading.

    python benchmarks/grading.py --seconds 5

Run it with nothing else running. Solutions are right, partly wrong, and raising, in turn; every verdict is checked.
Prints a Markdown table for docs/lab.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from palestra.types import Message, Outcome, Score, Task
from palestra.verify.forkers import Forkers
from palestra.verify.function import Call, FunctionCalls

CALLS = tuple(Call(f"'{'ab' * n} {n}', {n}", repr(f"{'ab' * n} {n}".upper()[::-1] * (n % 3 + 1))) for n in range(20))
SOLUTIONS = (
    ("def f(text, n): return text.upper()[::-1] * (n % 3 + 1)", 1.0),
    ("def f(text, n): return text.upper()[::-1] * (n % 3 + 1) if n < 10 else text", 0.5),
    ("def f(text, n): return text.upper()[::-1] * (n % 3 + 1) if n % 4 else [][n]", 0.75),
)
TASK = Task("t", "e", "train", 0, (Message("user", "write f"),))


async def rate(grade: Callable[[int], Awaitable[None]], concurrency: int, seconds: float) -> float:
    """Gradings per second over ``seconds``, after one warm-up each."""
    await asyncio.gather(*(grade(n) for n in range(concurrency)))
    done, ends = 0, time.perf_counter() + seconds
    start = time.perf_counter()

    async def worker(number: int) -> None:
        nonlocal done
        while time.perf_counter() < ends:
            await grade(done + number)
            done += 1

    await asyncio.gather(*map(worker, range(concurrency)))
    return done / (time.perf_counter() - start)


async def ours(concurrency: int, seconds: float) -> float:
    async with Forkers(concurrency) as forkers:
        grader = FunctionCalls("f", calls=CALLS, forkers=forkers)

        async def grade(number: int) -> None:
            source, expected = SOLUTIONS[number % len(SOLUTIONS)]
            score = await grader.grade(TASK, Outcome((), {"solution.py": source.encode()}))
            assert isinstance(score, Score) and score.value == expected, (score, expected)

        return await rate(grade, concurrency, seconds)


def pytest_rate(seconds: float) -> float:
    """The usual way, without isolation: solution and tests in a folder, one pytest process for each grading, its
    plug-ins off."""
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    tests = "".join(f"def test_{n}(): assert f({c.args}) == {c.expected}\n" for n, c in enumerate(CALLS))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_f.py").write_text("from solution import f\n" + tests)
        Path(folder, "solution.py").write_text(SOLUTIONS[0][0])
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder]
            subprocess.run(argv, check=True, capture_output=True, cwd=folder, env=env)
            done += 1
        return done / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--turns", type=int, default=5)
    chosen = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    found: dict[str, list[float]] = {"FunctionCalls, 2 at once": [], "FunctionCalls, 1 at a time": [], "pytest": []}
    for _ in range(chosen.turns):
        found["FunctionCalls, 2 at once"].append(asyncio.run(ours(2, chosen.seconds)))
        found["FunctionCalls, 1 at a time"].append(asyncio.run(ours(1, chosen.seconds)))
        found["pytest"].append(pytest_rate(chosen.seconds))
    print("| 20 calls a grading | gradings/s, median | lowest | highest |")
    print("|---|---|---|---|")
    for name, rates in found.items():
        print(f"| {name} | {statistics.median(rates):.1f} | {min(rates):.1f} | {max(rates):.1f} |")
    both = [statistics.median(found[name]) for name in ("FunctionCalls, 2 at once", "pytest")]
    print(f"\nratio of medians, ours 2 at once to pytest one at a time: {both[0] / both[1]:.0f}")


if __name__ == "__main__":
    main()
