"""Peak memory and time of log-probabilities with gradients: chunked against naive.

    python benchmarks/log_prob_memory.py [--json] [--tokens 2048] [--hidden 512] [--vocab 32768]

Each method runs in a process of its own, so that one's peak doesn't hide the other's. Extra memory
is the peak above what the inputs take; the gradient of the output layer is part of both. Seconds
are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import psutil
import torch
from torch import Tensor

from prime_core.trainer.logprobs import token_logprobs

METHODS = ("naive", "chunked")


def naive_logprobs(hidden: Tensor, head: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """What the chunked function computes, the usual way."""
    logp = torch.log_softmax(hidden @ head.T, dim=-1)
    return logp.gather(1, targets[:, None]).squeeze(1), -(logp.exp() * logp).sum(-1)


def measure(method: str, tokens: int, width: int, vocab: int, repeats: int) -> dict[str, float]:
    """Forward and backward of one method in this process: MiB, seconds, and a check sum."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, width, generator=generator).requires_grad_()
    head = torch.randn(vocab, width, generator=generator).mul_(0.05).requires_grad_()
    targets = torch.randint(vocab, (tokens,), generator=generator)
    # the libraries' own one-off buffers, on a problem too small to raise the peak
    small = torch.zeros(64, width)
    naive_logprobs(small, small, targets[:64] % 64)
    token_logprobs(small, small, targets[:64] % 64, 1.0)

    before = psutil.Process().memory_info().rss
    times: list[float] = []
    total = norm = 0.0
    for _ in range(repeats):
        start = time.process_time()
        if method == "naive":
            logprobs, entropies = naive_logprobs(hidden, head, targets)
        else:
            logprobs, entropies = token_logprobs(hidden, head, targets, 1.0)
        gradient, _ = torch.autograd.grad(logprobs.sum() + 1e-3 * entropies.sum(), (head, hidden))
        times.append(time.process_time() - start)
        norm = float(gradient.norm())
        total = float(logprobs.sum())
        del gradient, logprobs, entropies
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "extra_mib": (peak - before) / 2**20,
        "seconds": min(times),
        "logprob_sum": total,
        "head_grad_norm": norm,
    }


def main() -> None:
    """Measure both methods and print figures and ratio."""
    parser = argparse.ArgumentParser(description="log-probability memory, chunked against naive")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--vocab", type=int, default=32768)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--method", choices=METHODS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.method:
        found = measure(given.method, given.tokens, given.hidden, given.vocab, given.repeats)
        print(json.dumps(found))
        return
    results: dict[str, Any] = {}
    for method in METHODS:
        command = [sys.executable, __file__, *sys.argv[1:], "--method", method]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results[method] = json.loads(done.stdout)
    naive, chunked = (results[method] for method in METHODS)
    results["memory_ratio"] = chunked["extra_mib"] / naive["extra_mib"]
    results["time_ratio"] = chunked["seconds"] / naive["seconds"]
    if given.json:
        print(json.dumps(results, indent=2))
        return
    for method in METHODS:
        found = results[method]
        print(f"{method:8} {found['extra_mib']:8.0f} MiB {found['seconds']:7.2f} s")
    print(f"memory ratio {results['memory_ratio']:.2f}, time ratio {results['time_ratio']:.2f}")


if __name__ == "__main__":
    main()
