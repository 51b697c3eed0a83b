"""Training passes per second on samples of mixed length: packed against padded.

    python benchmarks/packing.py [--json] [--samples 48]

Both run forward and backward of one tiny Qwen2 over the same samples, one thread. Padded is the
usual way: batches of 8 in arrival order, filled up to their longest sample. Seconds are CPU time.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prime_core.engines.tiny_model import build_tiny_model
from prime_core.trainer.model import PolicyModel, load_policy
from prime_core.trainer.packing import Rollout, pack, plan

PADDED_BATCH = 8
CAPACITY = 2048


def make_samples(count: int, seed: int = 0) -> list[Rollout]:
    """Lognormal lengths (median 150, most below 600, none above 1000), half of each trained."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(rng.normal(5.0, 0.6, count)).astype(int).clip(8, 1000)
    return [
        Rollout(
            rng.integers(0, 40, n), np.arange(n) >= n // 2, np.zeros(n, np.float32), 1.0, version=0
        )
        for n in (int(length) for length in lengths)
    ]


def packed_pass(policy: PolicyModel, samples: list[Rollout]) -> tuple[float, int]:
    """Sum of trained log-probabilities, with gradients, and places computed."""
    total, places = 0.0, 0
    for one in plan([len(s.token_ids) - 1 for s in samples], CAPACITY, 1)[0]:
        micro = pack([samples[i] for i in one], [1.0] * len(one), torch.device("cpu"))
        logprobs, _ = policy(micro)
        loss = (logprobs * micro.weights_T).sum()
        loss.backward()
        total += float(loss)
        places += len(micro.inputs_T)
    return total, places


def padded_pass(model: Any, samples: list[Rollout]) -> tuple[float, int]:
    """The same with padding, in batches of arrival order."""
    total, places = 0.0, 0
    for start in range(0, len(samples), PADDED_BATCH):
        batch = samples[start : start + PADDED_BATCH]
        width = max(len(s.token_ids) for s in batch)
        ids = torch.zeros(len(batch), width, dtype=torch.int64)
        real = torch.zeros(len(batch), width, dtype=torch.int64)
        trained = torch.zeros(len(batch), width, dtype=torch.bool)
        for row, sample in enumerate(batch):
            ids[row, : len(sample.token_ids)] = torch.from_numpy(sample.token_ids)
            real[row, : len(sample.token_ids)] = 1
            trained[row, : len(sample.token_ids)] = torch.from_numpy(sample.trained)
        logits = model(input_ids=ids, attention_mask=real, use_cache=False).logits[:, :-1]
        logp = torch.log_softmax(logits.float(), -1).gather(2, ids[:, 1:, None]).squeeze(2)
        loss = (logp * trained[:, 1:]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss)
        places += ids.numel()
    return total, places


def timed(run: Callable[[], tuple[float, int]], repeats: int) -> dict[str, float]:
    """The best of several passes, after one that warms up."""
    total, places = run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return {"seconds": min(times), "places": places, "logprob_sum": total}


def main() -> None:
    """Measure both ways and print figures and ratio."""
    parser = argparse.ArgumentParser(description="packed against padded training passes")
    parser.add_argument("--samples", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    samples = make_samples(given.samples)
    tokens = sum(len(s.token_ids) for s in samples)
    with tempfile.TemporaryDirectory() as scratch:
        directory = build_tiny_model(Path(scratch), hidden=256, layers=4, heads=4)
        from transformers import AutoModelForCausalLM

        padded_model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="sdpa")
        policy = load_policy(directory, temperature=1.0)
    results: dict[str, Any] = {
        "samples": len(samples),
        "tokens": tokens,
        "padded": timed(lambda: padded_pass(padded_model, samples), given.repeats),
        "packed": timed(lambda: packed_pass(policy, samples), given.repeats),
    }
    for way in ("padded", "packed"):
        results[way]["tokens_per_second"] = tokens / results[way]["seconds"]
    results["speed_ratio"] = results["padded"]["seconds"] / results["packed"]["seconds"]
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for way in ("padded", "packed"):
        found = results[way]
        print(
            f"{way:7} {found['seconds']:6.2f} s {found['tokens_per_second']:7.0f} tokens/s, "
            f"{max(0.0, 1 - tokens / found['places']):.0%} padding"
        )
    print(f"packed is {results['speed_ratio']:.2f} times as fast")


if __name__ == "__main__":
    main()
