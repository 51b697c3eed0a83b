"""The noise on a GPU: the assignment's words to the bit, its winners, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu_support import report

from prime_core.assignment import gumbel, gumbel_argmax, gumbel_words
from prime_core.engines.vllm.noise import gumbel_noise, race_on_device
from prime_core.engines.vllm.noise import gumbel_words as device_words

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def test_words_on_the_gpu_are_those_of_the_assignment() -> None:
    rng = np.random.default_rng(0)
    rows, vocab = 16, 151_936
    seeds = rng.integers(0, 2**63 - 1, rows, dtype=np.int64)
    positions = rng.integers(0, 2**32, rows, dtype=np.int64)
    on_device = [torch.from_numpy(each).cuda() for each in (seeds, positions)]
    expected = gumbel_words(seeds, positions, np.arange(vocab))
    assert np.array_equal(device_words(*on_device, vocab).cpu().numpy(), expected)
    noise = gumbel_noise(*on_device, vocab).cpu().numpy()
    np.testing.assert_allclose(noise, gumbel(seeds, positions, np.arange(vocab)), rtol=2e-7)


@pytest.mark.parametrize("sharpness", [1.0, 4.0])
def test_winners_on_the_gpu_are_those_of_the_assignment(sharpness: float) -> None:
    rng = np.random.default_rng(1)
    rows, vocab = 64, 151_936
    logits = torch.from_numpy(rng.normal(size=(rows, vocab)).astype(np.float32)) * sharpness
    logprobs = logits.log_softmax(dim=-1)
    seeds, positions = rng.integers(0, 2**63 - 1, rows), rng.integers(0, 2**15, rows)
    found = race_on_device(
        logprobs.cuda(),
        torch.from_numpy(seeds).cuda(),
        torch.from_numpy(positions).cuda(),
        torch.zeros(rows, dtype=torch.bool).cuda(),
    )
    assert found.tolist() == gumbel_argmax(logprobs.numpy(), seeds, positions).tolist()


def test_what_a_race_costs_on_the_gpu() -> None:
    figures: dict[str, float] = {}
    for rows in (1, 32, 256):
        logprobs = torch.randn((rows, 151_936), device="cuda").log_softmax(dim=-1)
        numbers = torch.arange(rows, device="cuda")
        greedy = torch.zeros(rows, dtype=torch.bool, device="cuda")
        first = race_on_device(logprobs, numbers, numbers, greedy)
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        for _ in range(20):
            again = race_on_device(logprobs, numbers, numbers, greedy)
        ended.record()
        torch.cuda.synchronize()
        assert torch.equal(first, again), "a race has one winner"
        figures[f"batch {rows}"] = round(began.elapsed_time(ended) / 20, 3)
    report("milliseconds of one step's races", figures)
