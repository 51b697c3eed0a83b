"""Training passes per second on samples of mixed length: packed against padded.

    python benchmarks/packing.py [--json] [--groups 6]

Both run forward and backward of one tiny Qwen2 over the same samples, one thread. Padded is the
usual way: batches of 8 in arrival order, filled up to their longest sample. Packed samples of one
group share their prompt. Seconds are CPU time.
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
from numpy.typing import NDArray

from prime_core.engines.tiny_model import build_tiny_model
from prime_core.trainer.micro import pack
from prime_core.trainer.model import PolicyModel, load_policy
from prime_core.trainer.packing import Rollout, bundle, plan

GROUP = 8
CAPACITY = 2048
Groups = list[list[Rollout]]


def make_rollout(rng: np.random.Generator, prompt: NDArray[np.int64], length: int) -> Rollout:
    """A rollout of `length` tokens behind a prompt."""
    tokens = np.concatenate([prompt, rng.integers(0, 40, length)])
    trained = np.arange(len(tokens)) >= len(prompt)
    return Rollout(tokens, trained, np.zeros(len(tokens), np.float32), 1.0, version=0)


def mixed_samples(groups: int) -> Groups:
    """Every sample with a prompt of its own; lengths lognormal, median 150, at most 1000."""
    rng = np.random.default_rng(0)
    lengths = np.exp(rng.normal(5.0, 0.6, (groups, GROUP))).astype(int).clip(8, 1000)
    return [
        [make_rollout(rng, rng.integers(0, 40, n // 2), n - n // 2) for n in row.tolist()]
        for row in lengths
    ]


def grouped_samples(groups: int) -> Groups:
    """GRPO's own shape: groups of 8 with one prompt of 128 tokens, completions of 16 to 127."""
    rng = np.random.default_rng(1)
    result = []
    for _ in range(groups):
        prompt = rng.integers(0, 40, 128)
        result.append([make_rollout(rng, prompt, int(rng.integers(16, 128))) for _ in range(GROUP)])
    return result


def packed_pass(policy: PolicyModel, groups: Groups) -> tuple[float, int]:
    """Sum of trained log-probabilities, with gradients, and places computed."""
    total, places = 0.0, 0
    samples = [one for group in groups for one in group]
    bundles = bundle(groups, CAPACITY)
    for bins in plan([one.inputs for one in bundles], CAPACITY, 1)[0]:
        weights = [1.0] * len(samples)
        micro = pack(samples, [bundles[b] for b in bins], weights, torch.device("cpu"))
        logprobs, _ = policy(micro)
        loss = (logprobs * micro.weights_N).sum()
        loss.backward()
        total += float(loss)
        places += len(micro.inputs_T)
    return total, places


def padded_pass(model: Any, groups: Groups) -> tuple[float, int]:
    """The same with padding, in batches of arrival order."""
    total, places = 0.0, 0
    for batch in groups:
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


def compare(model: Any, policy: PolicyModel, groups: Groups, repeats: int) -> dict[str, Any]:
    """Both ways over the same samples."""
    tokens = sum(len(one.token_ids) for group in groups for one in group)
    found: dict[str, Any] = {
        "tokens": tokens,
        "padded": timed(lambda: padded_pass(model, groups), repeats),
        "packed": timed(lambda: packed_pass(policy, groups), repeats),
    }
    for way in ("padded", "packed"):
        found[way]["tokens_per_second"] = tokens / found[way]["seconds"]
    found["speed_ratio"] = found["padded"]["seconds"] / found["packed"]["seconds"]
    return found


def main() -> None:
    """Measure both ways on both kinds of samples and print figures and ratio."""
    parser = argparse.ArgumentParser(description="packed against padded training passes")
    parser.add_argument("--groups", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        directory = build_tiny_model(Path(scratch), hidden=256, layers=4, heads=4)
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="sdpa")
        policy = load_policy(directory, temperature=1.0)
    results = {
        "mixed": compare(model, policy, mixed_samples(given.groups), given.repeats),
        "grouped": compare(model, policy, grouped_samples(given.groups), given.repeats),
    }
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for kind, found in results.items():
        for way in ("padded", "packed"):
            one = found[way]
            print(
                f"{kind:8} {way:7} {one['seconds']:6.2f} s {one['tokens_per_second']:7.0f} "
                f"tokens/s, {one['places']} places for {found['tokens']} tokens"
            )
        print(f"{kind:8} packed is {found['speed_ratio']:.2f} times as fast")


if __name__ == "__main__":
    main()
