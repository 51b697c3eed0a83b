"""Requests that a model can't be asked are refused by name, before it sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from prime_core.api import EngineError, GenerationRequest, PrefillRequest
from prime_core.engines.fitting import Fit, fit_of

CONTEXT = 16
FIT = Fit(CONTEXT, vocabulary=100)
GOOD = GenerationRequest("r7", "g", (1, 99), 3, 0, 14, 1.0)


def test_what_fits_passes() -> None:
    huge = replace(GOOD, token_ids=(1 << 40,), max_tokens=1 << 40)
    for fit, request in (
        (FIT, GOOD),
        (FIT, replace(GOOD, temperature=0.0)),
        (FIT, replace(GOOD, seed=(1 << 63) - 1, position=(1 << 32) - 1)),
        (Fit(None, None), huge),
    ):
        fit.check_generation(request)  # raises for what doesn't fit
    FIT.check_prefill(PrefillRequest((1,) * CONTEXT, 15, 1.0))
    with pytest.raises(EngineError):
        FIT.check_prefill(PrefillRequest((1,) * (CONTEXT + 1), 15, 1.0))
    with pytest.raises(EngineError):
        FIT.check_generation(huge)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (replace(GOOD, token_ids=()), "0 prompt tokens"),
        (replace(GOOD, max_tokens=0), "max_tokens 0"),
        (replace(GOOD, max_tokens=15), "17 tokens exceed the context of 16"),
        (replace(GOOD, max_tokens=1 << 40), "exceed the context of 16"),
        (replace(GOOD, temperature=-1.0), "temperature -1"),
        (replace(GOOD, temperature=float("nan")), "temperature nan"),
        (replace(GOOD, temperature=float("inf")), "temperature inf"),
        (replace(GOOD, temperature=1e-40), "temperature 1e-40"),
        (replace(GOOD, temperature=1e40), r"temperature 1e\+40"),
        (replace(GOOD, seed=1 << 63), "seed 9223372036854775808 isn't"),
        (replace(GOOD, seed=-1), "seed -1"),
        (replace(GOOD, position=-1), "position -1"),
        (replace(GOOD, position=1 << 32), "position 4294967296"),
        (replace(GOOD, token_ids=(1, 100)), "token 100 is none of the model's 100"),
        (replace(GOOD, token_ids=(-1, 1)), "token -1 is none"),
    ],
)
def test_what_cannot_be_generated_is_refused_by_name(bad: GenerationRequest, what: str) -> None:
    with pytest.raises(EngineError, match=what) as raised:
        FIT.check_generation(bad)
    assert raised.value.where == "request r7"


@pytest.mark.parametrize(
    ("tokens", "start", "what"),
    [
        ((1, 2), 0, "start 0"),
        ((1, 2), 2, "start 2 isn.t within 1..1"),
        ((1,) * 17, 1, "17 tokens exceed"),
        ((1, 100), 1, "token 100"),
        ((1, -1), 1, "token -1"),
    ],
)
def test_what_cannot_be_recomputed_is_refused(
    tokens: tuple[int, ...], start: int, what: str
) -> None:
    with pytest.raises(EngineError, match=what):
        FIT.check_prefill(PrefillRequest(tokens, start, 1.0))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"temperature": 1e-40}, "temperature 1e-40"),
        ({"seed": 1 << 63}, "seed"),
        ({"positions": (0,)}, "1 positions of 2 tokens"),
        ({"positions": (0, 1 << 32)}, "position 4294967296"),
    ],
)
def test_draws_that_cannot_be_recomputed_are_refused(changes: dict[str, Any], what: str) -> None:
    good = PrefillRequest((1, 2, 3), 1, 1.0, seed=5, positions=(-1, 0))
    FIT.check_prefill(good)
    with pytest.raises(EngineError, match=what):
        FIT.check_prefill(replace(good, **changes))


def test_limits_come_from_the_models_config() -> None:
    flat = {"max_position_embeddings": 64, "vocab_size": 10}
    assert fit_of(flat) == Fit(64, 10)
    assert fit_of({"text_config": flat}) == Fit(64, 10)
    assert fit_of(flat, context=8) == Fit(8, 10)
    assert fit_of({}) == Fit(None, None)
