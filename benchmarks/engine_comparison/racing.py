"""CPU of one token's seeded race, of its commitment, and of vLLM's kind of sampling, alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from engine_comparison.material import Rows
from prime_core.engines.transformers.race import choose_tokens
from prime_core.toploc import ProofBuilder


def race_alone(*, quick: bool) -> Rows:
    """CPU milliseconds a token, on logits of SmolLM2's size."""
    rows: Rows = []
    repeats = 3 if quick else 20
    for size in (1, 8, 32):
        generator = torch.Generator().manual_seed(0)
        # As peaked as SmolLM2's: a standard deviation of 3 nats about the mean.
        logits = torch.randn((size, 49152), generator=generator) * 3
        seeds, greedy = np.arange(size), np.zeros(size, dtype=np.bool_)
        states = torch.randn((32, 576), generator=generator).bfloat16()
        race = partial(choose_tokens, logits.log_softmax(dim=-1), seeds, seeds, greedy)
        rows.append(
            {
                "batch": size,
                "race_ms": each_ms(race, size, repeats),
                "log_softmax_ms": each_ms(partial(logits.log_softmax, dim=-1), size, repeats),
                "unseeded_ms": each_ms(partial(_exponential, logits), size, repeats),
                "commitment_ms": each_ms(partial(_commit, states), 32, repeats),
            }
        )
    return rows


def _exponential(logits: torch.Tensor) -> object:
    probabilities = logits.softmax(dim=-1)
    return probabilities.div_(torch.empty_like(probabilities).exponential_()).argmax(-1)


def _commit(states: torch.Tensor) -> object:
    builder = ProofBuilder()
    builder.add(states)
    return builder.finish()


def each_ms(work: Callable[[], object], tokens: int, repeats: int) -> float:
    """Median CPU milliseconds a token."""
    work()
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        found.append(1e3 * (time.process_time() - started) / tokens)
    return round(statistics.median(found), 4)
