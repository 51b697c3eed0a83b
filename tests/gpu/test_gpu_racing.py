"""The noise on a GPU: the assignment's words to the bit, and its winners."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from prime_core.assignment import gumbel_argmax, gumbel_at, gumbel_words
from prime_core.engines.vllm.noise import gumbel_noise, race_on_device
from prime_core.engines.vllm.noise import gumbel_words as device_words

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def test_words_on_the_gpu_are_those_of_the_assignment() -> None:
    rng = np.random.default_rng(0)
    count = 1 << 20
    seeds, positions, tokens = (
        rng.integers(0, most, count, dtype=np.int64) for most in (2**63 - 1, 2**32, 2**18)
    )
    on_device = [torch.from_numpy(each).cuda() for each in (seeds, positions, tokens)]
    expected = gumbel_words(seeds, positions, tokens[:, None])[:, 0]
    assert np.array_equal(device_words(*on_device).cpu().numpy(), expected)
    noise = gumbel_noise(*on_device).cpu().numpy()
    np.testing.assert_allclose(noise, gumbel_at(seeds, positions, tokens), rtol=2e-7)


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
