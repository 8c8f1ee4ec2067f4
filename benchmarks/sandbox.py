"""What a sandbox costs: ours, a bare bubblewrap, a plain process, inspect-ai's local sandbox and swe-rex's, in one run.

    python benchmarks/sandbox.py [--peer-python PATH] [--rounds 100] [--many 1000] [--json]

PATH is an interpreter that has inspect-ai and swe-rex; a peer that it lacks is left out, with the reason. The peers'
local sandboxes isolate nothing: they are measured to say what isolation costs, not as its equals.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from palestra.sandboxes import Limits, bwrap, open_sandbox, stores
from palestra.sandboxes.local import LocalSandbox
from palestra.sandboxes.pool import SandboxPool
from palestra.sandboxes.zygote import Zygote

EVALUATION = "import json\ndef f(x): return x * x + 1\nreply(json.dumps([f(x) for x in json.loads(CALL)]).encode())"
PYTEST = """import pytest
def f(x): return x * x + 1
@pytest.mark.parametrize('x', range(20))
def test(x): assert f(x) == x * x + 1
"""
PEERS = {
    "inspect-ai local": """
import asyncio, json, time
from inspect_ai.util._sandbox.local import LocalSandboxEnvironment as Box
async def one():
    boxes = await Box.sample_init("bench", None, {})
    result = await next(iter(boxes.values())).exec(["true"])
    assert result.returncode == 0
    await Box.sample_cleanup("bench", None, boxes, False)
""",
    "swe-rex local": """
import asyncio, json, logging, time
logging.disable(logging.CRITICAL)
from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import Command
async def one():
    place = LocalDeployment()
    await place.start()
    result = await place.runtime.execute(Command(command=["true"]))
    assert result.exit_code == 0
    await place.stop()
""",
}
PEER_TAIL = """
async def main(rounds):
    times = []
    for _ in range(rounds + 3):
        start = time.perf_counter()
        await one()
        times.append(time.perf_counter() - start)
    print("\\n" + json.dumps(times[3:]))
asyncio.run(main(ROUNDS))
"""


@dataclass(frozen=True)
class Row:
    """median and p95 in milliseconds; target: the most that the median may be, None where there is none."""

    what: str
    median_ms: float
    p95_ms: float
    target_ms: float | None
    note: str = ""


def row(what: str, seconds: list[float], target_ms: float | None = None, note: str = "") -> Row:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return Row(what, statistics.median(ordered) * 1e3, p95 * 1e3, target_ms, note)


async def timed(work: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds + 3):  # the first three warm caches
        started = time.perf_counter()
        await work()
        times.append(time.perf_counter() - started)
    return times[3:]


async def plain_process() -> None:
    subprocess.run(["/bin/true"], check=True)


async def bare_bwrap() -> None:
    bind = [arg for path in bwrap.SYSTEM for arg in bwrap._system(path)]
    spaces = ["--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
    subprocess.run([bwrap.find_bwrap(), *bind, *spaces, "/bin/true"], check=True)


async def cold() -> None:
    async with open_sandbox("local") as box:
        assert (await box.exec(["true"])).exit_code == 0


async def starts(rounds: int) -> list[Row]:
    rows = [
        row("plain process: true", await timed(plain_process, rounds)),
        row("bare bubblewrap: true", await timed(bare_bwrap, rounds)),
        row("local, cold: open + true + close", await timed(cold, rounds), 12),
    ]
    async with open_sandbox("local") as box:
        rows.append(row("local, open: true", await timed(lambda: box.exec(["true"]), rounds)))
    return [*rows, await from_pool(rounds)]


async def from_pool(rounds: int) -> Row:
    """Bursts of as many leases as the pool keeps ready before it makes others; the making is between the bursts."""
    times: list[float] = []
    async with SandboxPool(32) as pool:
        while len(times) < rounds:
            for _ in range(15):
                started = time.perf_counter()
                async with pool.lease() as box:
                    assert (await box.exec(["true"])).exit_code == 0
                times.append(time.perf_counter() - started)
            await pool.settle()
        leaks = pool.metrics().leaks
    return row("local, from a pool: lease + true + return", times, 3, f"leaks {leaks}")


async def evaluations(rounds: int) -> list[Row]:
    payload = json.dumps(list(range(20))).encode()
    async with Zygote(preload=("json",)) as zygote:

        async def one() -> None:
            reply = await zygote.call(EVALUATION, payload)
            assert reply.outcome == "returned" and len(reply.frames) == 1, reply

        ours = await timed(one, rounds)
    with tempfile.TemporaryDirectory() as folder:
        test = Path(folder) / "test_it.py"
        test.write_text(PYTEST)
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, str(test)]

        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other packages' plug-ins are not pytest's cost

        async def pytest() -> None:
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)

        theirs = await timed(pytest, max(rounds // 10, 3))
    ratio = statistics.median(theirs) / statistics.median(ours)
    return [
        row("zygote: one evaluation of 20 calls", ours, 3, f"{ratio:.0f}x python -m pytest (target 40x)"),
        row("python -m pytest: the same evaluation", theirs),
    ]


async def forks(rounds: int) -> Row:
    async with open_sandbox("local") as box:
        fill = "for i in $(seq 50); do mkdir d$i; for j in $(seq 100); do head -c 41000 /dev/zero > d$i/$j; done; done"
        assert (await box.exec(["sh", "-c", fill], limits=Limits(wall_s=120))).exit_code == 0
        times, used = [], []
        for _ in range(max(rounds // 5, 5)):
            started = time.perf_counter()
            child = await box.fork()
            times.append(time.perf_counter() - started)
            assert isinstance(child, LocalSandbox)
            facts = os.fstatvfs((await child.tree()).store.folder)
            used.append((facts.f_blocks - facts.f_bfree) * facts.f_frsize)
            await child.close()
    return row("fork of 5,000 files, 200 MB", times, 20, f"{max(used) / 1e6:.3f} MB new (target < 1)")


def held() -> dict[str, float]:
    """What is held now: our descriptors and resident MiB, the keeper's processes, mounts and resident MiB."""
    keeper = stores._KEEPER[0].process.pid
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    mounts = Path(f"/proc/{keeper}/mountinfo").read_text().count(str(stores._KEEPER[0].base))

    def resident(pid: int | str) -> float:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "processes": len(children),
        "mounts": mounts,
        "mib": resident("self"),
        "keeper_mib": resident(keeper),
    }


async def many(count: int, at_once: int) -> list[Row]:
    for _ in range(20):
        await cold()
    await asyncio.sleep(0.2)
    before = held()
    times = await timed(cold, count)
    await asyncio.sleep(0.2)
    after = held()
    left = {name: round(after[name] - before[name], 1) for name in before}
    one = row(f"{count} one after another", times, None, f"left: {left}")
    started = time.perf_counter()
    await asyncio.gather(*(cold() for _ in range(at_once)))
    whole = time.perf_counter() - started
    await asyncio.sleep(0.2)
    left = {name: round(held()[name] - after[name], 1) for name in before}
    return [one, row(f"{at_once} at once, all of them", [whole], None, f"left: {left}")]


def peers(python: str | None, rounds: int) -> list[Row | str]:
    if python is None:
        return [f"{name}: skipped, no --peer-python" for name in PEERS]
    found: list[Row | str] = []
    for name, source in PEERS.items():
        program = source + PEER_TAIL.replace("ROUNDS", str(rounds))
        ran = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=600, check=False)
        if ran.returncode:
            found.append(f"{name}: skipped, {(ran.stderr.strip().splitlines() or ['it said nothing'])[-1]}")
        else:
            found.append(row(f"{name}: start + true + close", json.loads(ran.stdout.strip().splitlines()[-1])))
    return found


async def measure(rounds: int, count: int) -> list[Row]:
    rows = await starts(rounds)
    rows += await evaluations(rounds)
    rows.append(await forks(rounds))
    return rows + await many(count, 64)


def show(rows: list[Row], skipped: list[str]) -> str:
    lines = [f"{'':44}{'median ms':>10}{'p95 ms':>10}{'target':>8}"]
    for each in rows:
        target = f"{each.target_ms:g}" if each.target_ms else ""
        lines.append(f"{each.what:44}{each.median_ms:10.2f}{each.p95_ms:10.2f}{target:>8}  {each.note}")
    return "\n".join([*lines, *skipped])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--many", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = asyncio.run(measure(args.rounds, args.many))
    others = peers(args.peer_python, args.rounds)
    rows += [each for each in others if isinstance(each, Row)]
    skipped = [each for each in others if isinstance(each, str)]
    facts: dict[str, Any] = {"python": platform.python_version(), "kernel": platform.release(), "cores": os.cpu_count()}
    facts["load"] = os.getloadavg()[0]
    if args.json:
        print(json.dumps({**facts, "rows": [asdict(each) for each in rows], "skipped": skipped}))
    else:
        print(", ".join(f"{name} {value}" for name, value in facts.items()))
        print(show(rows, skipped))


if __name__ == "__main__":
    main()
