"""Generation of the native engine against calling the same model without a cache, in one run.

    python benchmarks/generation.py --threads 2

Both sample the same 64 prompts × 8 continuations of the same length from the same weights. "No cache" is the model
called on prompt and continuation anew for every token, all samples in one batch, as a straightforward loop would.
Run it with nothing else running; the ratio is of medians.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from random import Random

import torch
from torch import Tensor

from palestra.models.native import NativePolicy
from palestra.models.render import ByteRenderer
from palestra.models.tiny import TinyLM
from palestra.types import Message, SamplingParams

PROMPTS, SAMPLES, TOKENS = 64, 8, 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args()
    model = TinyLM()
    with torch.no_grad():
        model.embed[0].weight[256:] -= 10.0  # no sample ends early: both sides make the same number of tokens
    rng = Random(0)
    renderer = ByteRenderer()
    calls = ["".join(rng.choices("abcdefgh(),[]1234", k=rng.randint(20, 40))) for _ in range(PROMPTS)]
    prompts = [renderer.prompt([Message("user", call)]) for call in calls]
    policy = NativePolicy(model, workers=chosen.threads)

    def engine() -> int:
        asked = [(prompt, SAMPLES, SamplingParams(1.0, TOKENS, seed=i)) for i, prompt in enumerate(prompts)]
        return sum(len(made.ids) for group in policy.generate(asked) for made in group)

    torch.set_num_threads(chosen.threads)
    ours, plain = [], []
    for _ in range(chosen.repeats):  # in turn, so that whatever else happens hits both
        plain.append(rate(lambda: without_cache(model, prompts)))
        ours.append(rate(engine))
        torch.set_num_threads(chosen.threads)
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, {chosen.threads} threads")
    print("| | tokens/s, median | lowest | highest |\n|---|---|---|---|")
    for name, rates in (("native engine", ours), ("no cache", plain)):
        print(f"| {name} | {statistics.median(rates):.0f} | {min(rates):.0f} | {max(rates):.0f} |")
    print(f"\nratio of medians: {statistics.median(ours) / statistics.median(plain):.1f}")


def rate(work: Callable[[], int]) -> float:
    start = time.perf_counter()
    return work() / (time.perf_counter() - start)


@torch.inference_mode()
def without_cache(model: TinyLM, prompts: list[tuple[int, ...]]) -> int:
    """Sample by running the model on everything so far, for each token again."""
    rows = [prompt for prompt in prompts for _ in range(SAMPLES)]
    longest = max(map(len, rows))
    # Left-padded, so that every row's newest token stands last; padding is seen by nobody.
    ids = torch.tensor([[261] * (longest - len(row)) + list(row) for row in rows])
    is_real = ids != 261
    for _ in range(TOKENS):
        length = ids.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        is_visible = (causal & is_real[:, None, :]) | torch.eye(length, dtype=torch.bool)
        positions = (is_real.cumsum(-1) - 1).clamp_min(0)
        hidden: Tensor = model(model.windows(ids), positions, is_visible)
        drawn = torch.multinomial(model.logits(hidden[:, -1]).softmax(-1), 1)
        ids, is_real = torch.cat((ids, drawn), -1), torch.cat((is_real, torch.ones_like(drawn, dtype=torch.bool)), -1)
    return len(rows) * TOKENS


if __name__ == "__main__":
    main()
