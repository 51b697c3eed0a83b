"""A prefill replays the race and says how likely tokens were to be drawn; EOS ids are read."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from prime_core.api import EngineError
from prime_core.engines.stop_tokens import stop_tokens
from prime_core.engines.transformers.race import choose_tokens, draws

VOCAB = 40
SEED = 12345


def sampled(positions: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    logprobs = (torch.randn((len(positions), VOCAB), generator=generator) * 2).log_softmax(-1)
    seeds = np.full(len(positions), SEED, dtype=np.int64)
    places = np.maximum(np.array(positions), 0)
    return logprobs, choose_tokens(logprobs, seeds, places, np.zeros(len(positions), dtype=bool))


def test_drawn_tokens_win_their_races_and_others_lose() -> None:
    positions = list(range(12))
    logprobs, chosen = sampled(positions)
    assert not draws(logprobs, chosen, SEED, positions).race_gaps.any()
    assert draws(logprobs, chosen, SEED + 1, positions).race_gaps.any()
    assert draws(logprobs, (chosen + 1) % VOCAB, SEED, positions).race_gaps.min() > 0


def test_the_environments_tokens_run_no_race() -> None:
    logprobs, chosen = sampled([0, -1, -1, 1])
    wrong = (chosen + 1) % VOCAB
    gaps = draws(logprobs, wrong, SEED, [0, -1, -1, 1]).race_gaps
    assert (gaps > 0).tolist() == [True, False, False, True]


def test_means_and_variances_are_those_of_the_distribution() -> None:
    logprobs, chosen = sampled([0, 1])
    found = draws(logprobs, chosen, SEED, [0, 1])
    values = logprobs.double().numpy()
    chances = np.exp(values)
    means = (chances * values).sum(1)
    np.testing.assert_allclose(found.means, means, rtol=1e-5)
    variances = (chances * (values - means[:, None]) ** 2).sum(1)
    np.testing.assert_allclose(found.variances, variances, rtol=1e-4)


def test_a_token_stands_between_the_rarer_ones_and_those_no_more_probable() -> None:
    logprobs = torch.tensor([[0.1, 0.2, 0.2, 0.5]] * 3).log()
    found = draws(logprobs, torch.tensor([0, 1, 3]), SEED, [0, 1, 2])
    np.testing.assert_allclose(found.lower, [0.0, 0.1, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.upper, [0.1, 0.5, 1.0], atol=1e-6)


@pytest.mark.parametrize(
    ("generation", "config", "expected"),
    [
        ({"eos_token_id": [1, 2]}, {"eos_token_id": 7}, {1, 2}),
        ({}, {"eos_token_id": 7}, {7}),
        (None, {"eos_token_id": 0}, {0}),
        (None, {"text_config": {"eos_token_id": 4}}, {4}),
    ],
)
def test_stop_tokens_of_a_model_directory(tmp_path, generation, config, expected) -> None:
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation))
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert stop_tokens(tmp_path) == expected


def test_a_model_without_an_end_token_is_refused(tmp_path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EngineError, match="no EOS"):
        stop_tokens(tmp_path)
