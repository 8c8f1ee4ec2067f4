"""The main job's claims: time, memory, accuracy before and after RL, for several seeds; and `palestra --help`.

    python benchmarks/main_job.py --seeds 0 1 2 --out out/benchmark

Run it with nothing else running. Each seed is a process of its own; peak memory is that of the process tree's largest
member. Prints a Markdown table for docs/lab.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("out/benchmark"))
    chosen = parser.parse_args()
    palestra = Path(sys.executable).parent / "palestra"
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}\n"
    )
    print(f"`palestra --help`: median of 9 {help_seconds(palestra) * 1000:.0f} ms\n")
    print("| seed | admitted | before RL | after RL | gain | pass@8 | seconds | peak MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for seed in chosen.seeds:
        print(row(palestra, seed, chosen.out / f"seed-{seed}"), flush=True)


def help_seconds(palestra: Path) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run([palestra, "--help"], capture_output=True, check=True)
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(9))


def row(palestra: Path, seed: int, out: Path) -> str:
    start = time.perf_counter()
    env = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    argv = [str(palestra), "quickstart", "--out", str(out), "--seed", str(seed), "--json"]
    ended = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - start
    printed = json.loads(ended.stdout)
    memory = json.loads((out / "report.json").read_text())["measured"]["peak_memory_mib"]
    warm, rl = printed["warm"], printed["rl"]
    before, after = (f"{x['acc']:.1%} [{x['lo']:.1%}, {x['hi']:.1%}]" for x in (warm, rl))
    gain = f"{100 * (rl['acc'] - warm['acc']):+.1f} points{'' if warm['hi'] < rl['lo'] else ', intervals overlap'}"
    eight = f"{warm['pass_at']['8']:.3f} → {rl['pass_at']['8']:.3f}"
    return f"| {seed} | {printed['admitted']} | {before} | {after} | {gain} | {eight} | {seconds:.0f} | {memory:.0f} |"


if __name__ == "__main__":
    main()
