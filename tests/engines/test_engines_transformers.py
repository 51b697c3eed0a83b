"""Generation: seeds, batches, log-probabilities, hidden states, ends and cancelling."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prime_core.api import Generation, GenerationRequest, PrefillRequest
from prime_core.engines.model_files import local_policy
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.transformers.race import RACE_MARGIN, race_margins


def make_requests(
    count: int = 24,
    *,
    group: int = 4,
    max_tokens: int = 12,
    temperature: float = 1.0,
    seed: int = 7,
) -> list[GenerationRequest]:
    """Groups of ragged prompts, `group` requests on each."""
    rng = random.Random(seed)
    requests = []
    for k in range(count // group):
        prompt = tuple(rng.randrange(44) for _ in range(rng.randrange(1, 20)))
        requests += [
            GenerationRequest(
                f"{k}/{i}", str(k), prompt, rng.getrandbits(63), 0, max_tokens, temperature
            )
            for i in range(group)
        ]
    return requests


async def stream(requests: list[GenerationRequest]) -> AsyncIterator[GenerationRequest]:
    for request in requests:
        yield request


def collect(engine: Any, requests: list[GenerationRequest]) -> list[Generation]:
    async def run() -> list[Generation]:
        return [generation async for generation in engine.generate(stream(requests))]

    return asyncio.run(run())


def full_logprobs(engine: Any, tokens: tuple[int, ...], start: int, temperature: float) -> Any:
    """The library's own forward pass without a cache: log-probabilities and post-norm states."""
    model = engine._model
    with torch.inference_mode():
        output = model(torch.tensor([tokens]), output_hidden_states=True)
    logits = output.logits[0, start - 1 : -1].float() / (temperature or 1.0)
    logprobs = logits.log_softmax(-1)
    states = output.hidden_states[-1][0, start - 1 : -1]
    return logprobs, states


@pytest.mark.parametrize("variant", ["tied", "untied", "pad_is_eos", "grouped_heads"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_and_hidden_states_equal_a_full_forward(
    make_engine: Any, variant: str, temperature: float
) -> None:
    engine = make_engine(variant, hidden_states=True)
    requests = make_requests(temperature=temperature)
    for request, generation in zip(requests, collect(engine, requests), strict=True):
        tokens = request.token_ids + generation.token_ids
        logprobs, states = full_logprobs(engine, tokens, len(request.token_ids), temperature)
        expected = logprobs.gather(1, torch.tensor(generation.token_ids)[:, None])[:, 0].numpy()
        np.testing.assert_allclose(generation.logprobs, expected, atol=2e-5)
        assert generation.hidden_states is not None
        assert generation.hidden_states.shape == (len(generation.token_ids), 64)
        np.testing.assert_allclose(generation.hidden_states, states.numpy(), atol=2e-5)


@pytest.mark.parametrize("variant", ["tied", "pad_is_eos"])
def test_a_completion_is_the_same_alone_and_in_any_batch(make_engine: Any, variant: str) -> None:
    engine = make_engine(variant)
    requests = make_requests(48)
    together = {g.id: g for g in engine.generate_now(requests)}
    shuffled = requests[::-1][3:]
    compared = 0
    for other in [*engine.generate_now(shuffled), *map(alone(engine), requests[:12])]:
        request = next(r for r in requests if r.id == other.id)
        if closest_race(engine, request, together[other.id]) > RACE_MARGIN["float32"]:
            assert other.token_ids == together[other.id].token_ids
            assert other.finish_reason == together[other.id].finish_reason
            compared += 1
    assert compared > 40


def alone(engine: Any) -> Any:
    return lambda request: engine.generate_now([request])[0]


def closest_race(engine: Any, request: GenerationRequest, generation: Generation) -> float:
    tokens = request.token_ids + generation.token_ids
    logprobs, _ = full_logprobs(engine, tokens, len(request.token_ids), request.temperature)
    count = len(generation.token_ids)
    seeds = np.full(count, request.seed, dtype=np.int64)
    positions = np.arange(count, dtype=np.int64) + request.position
    return float(race_margins(logprobs, seeds, positions).min())


def test_the_same_stream_gives_the_same_bits(make_engine: Any) -> None:
    engine = make_engine("tied", hidden_states=True)
    requests = make_requests(40)
    first, second = collect(engine, requests), collect(engine, requests)
    for one, two in zip(first, second, strict=True):
        assert (one.token_ids, one.logprobs) == (two.token_ids, two.logprobs)
        np.testing.assert_array_equal(one.hidden_states, two.hidden_states)


def test_seeds_differ_and_positions_shift_the_noise(make_engine: Any) -> None:
    engine = make_engine()
    base = GenerationRequest("a", "a", (1, 2, 3), 5, 0, 8, 1.0)
    other_seed = GenerationRequest("b", "b", (1, 2, 3), 6, 0, 8, 1.0)
    one, two = engine.generate_now([base, other_seed])
    assert one.token_ids != two.token_ids
    # The second turn of a rollout continues the noise: same tokens as without the cut.
    cut = GenerationRequest("c", "c", (1, 2, 3, *one.token_ids[:3]), 5, 3, 5, 1.0)
    assert engine.generate_now([cut])[0].token_ids == one.token_ids[3:]


def test_greedy_takes_the_most_probable_token(make_engine: Any) -> None:
    engine = make_engine()
    for request, generation in zip(
        requests := make_requests(8, temperature=0.0), engine.generate_now(requests), strict=True
    ):
        tokens = request.token_ids + generation.token_ids
        logprobs, _ = full_logprobs(engine, tokens, len(request.token_ids), 0.0)
        assert logprobs.argmax(-1).tolist() == list(generation.token_ids)
        np.testing.assert_allclose(generation.logprobs, logprobs.amax(-1).numpy(), atol=2e-5)


def test_samples_follow_the_distribution(make_engine: Any) -> None:
    engine = make_engine()
    requests = [GenerationRequest(str(i), "g", (3, 4, 5), i, 0, 1, 1.0) for i in range(3000)]
    counts = np.zeros(47)
    for generation in engine.generate_now(requests):
        counts[generation.token_ids[0]] += 1
    logprobs, _ = full_logprobs(engine, (3, 4, 5, 0), 3, 1.0)
    expected = logprobs[0].exp().numpy() * len(requests)
    heavy = expected > 8
    chi_square = float((((counts - expected) ** 2) / expected)[heavy].sum())
    assert chi_square < heavy.sum() + 5 * np.sqrt(2 * heavy.sum())


@pytest.mark.parametrize("variant", ["tied", "pad_is_eos"])
def test_a_turn_ends_with_its_eos_token_or_at_its_limit(make_engine: Any, variant: str) -> None:
    engine = make_engine(variant)
    (stop,) = engine._stop_ids
    reasons = set()
    for generation in engine.generate_now(make_requests(120, max_tokens=40)):
        assert stop not in generation.token_ids[:-1]
        assert (generation.token_ids[-1] == stop) == (generation.finish_reason == "stop")
        if generation.finish_reason == "length":
            assert len(generation.token_ids) == 40
        reasons.add(generation.finish_reason)
    assert reasons == {"stop", "length"}


def test_a_prompt_full_of_pad_tokens_is_read_like_any_other(make_engine: Any) -> None:
    engine = make_engine("pad_is_eos", hidden_states=True)
    (stop,) = engine._stop_ids
    prompts = [(stop, stop, 5, stop), (stop,), (1, 2, 3, 4, 5, 6, 7)]
    requests = [GenerationRequest(str(i), "g", p, i, 0, 6, 1.0) for i, p in enumerate(prompts)]
    for request, generation in zip(requests, engine.generate_now(requests), strict=True):
        tokens = request.token_ids + generation.token_ids
        _, states = full_logprobs(engine, tokens, len(request.token_ids), 1.0)
        np.testing.assert_allclose(generation.hidden_states, states.numpy(), atol=2e-5)


def test_each_request_has_its_own_limit_and_temperature(make_engine: Any) -> None:
    engine = make_engine()
    limits = [(1, 1.0), (3, 0.5), (9, 0.0), (30, 2.0)]
    requests = [
        GenerationRequest(str(i), "g", (i, 2), i, 0, m, t) for i, (m, t) in enumerate(limits)
    ]
    for request, generation in zip(requests, engine.generate_now(requests), strict=True):
        assert len(generation.token_ids) <= request.max_tokens
        tokens = request.token_ids + generation.token_ids
        logprobs, _ = full_logprobs(engine, tokens, 2, request.temperature)
        chosen = logprobs.gather(1, torch.tensor(generation.token_ids)[:, None])[:, 0]
        np.testing.assert_allclose(generation.logprobs, chosen.numpy(), atol=2e-5)


def test_cancelling_a_group_changes_no_bit_of_the_others(make_engine: Any) -> None:
    engine = make_engine(hidden_states=True)
    requests = make_requests(24, max_tokens=30)
    whole = {g.id: g for g in engine.generate_now(requests)}
    asked = 0

    def cancelled(group_id: str) -> bool:
        nonlocal asked
        asked += 1
        return asked > 60 and group_id in {"0", "2"}

    from prime_core.engines.transformers.decoding import generate_batch

    with torch.inference_mode():
        results = generate_batch(
            engine._forward,
            requests,
            stop_ids=engine._stop_ids,
            keep_hidden=True,
            cancelled=cancelled,
        )
    assert any(g.finish_reason == "cancelled" for g in results)
    for generation in results:
        full = whole[generation.id]
        if generation.finish_reason == "cancelled":
            assert generation.id[0] in "02"
            assert generation.token_ids == full.token_ids[: len(generation.token_ids)]
        else:
            assert (generation.token_ids, generation.logprobs) == (full.token_ids, full.logprobs)


def test_a_cancelled_stream_ends_early_with_one_item_a_request(make_engine: Any) -> None:
    engine = make_engine(batch_size=4)
    requests = make_requests(16, max_tokens=500)

    async def run() -> list[Generation]:
        results = []
        async for generation in engine.generate(stream(requests)):
            results.append(generation)
            for group in "0123":
                engine.cancel(group)
        return results

    results = asyncio.run(run())
    assert [g.id for g in results] == [r.id for r in requests]
    assert all(g.finish_reason == "cancelled" and not g.token_ids for g in results[4:])
    engine.cancel("0")
    assert all(g.token_ids for g in collect(engine, make_requests(8)))


def test_prefill_equals_generation(make_engine: Any) -> None:
    engine = make_engine(hidden_states=True, batch_size=5)
    requests = make_requests(temperature=0.7)
    generations = engine.generate_now(requests)
    prefills = engine.prefill(
        [
            PrefillRequest(r.token_ids + g.token_ids, len(r.token_ids), 0.7)
            for r, g in zip(requests, generations, strict=True)
        ]
    )
    for generation, prefill in zip(generations, prefills, strict=True):
        np.testing.assert_allclose(prefill.logprobs, generation.logprobs, atol=2e-5)
        np.testing.assert_allclose(prefill.hidden_states, generation.hidden_states, atol=2e-5)


def test_bfloat16_differs_from_its_own_prefill_by_its_rounding(
    model_dirs: dict[str, Path],
) -> None:
    engine = TransformersEngine(TransformersParams(dtype="bfloat16"))
    engine.load(local_policy(model_dirs["tied"]))
    requests = make_requests(16)
    generations = engine.generate_now(requests)
    prefills = engine.prefill(
        [
            PrefillRequest(r.token_ids + g.token_ids, len(r.token_ids), 1.0)
            for r, g in zip(requests, generations, strict=True)
        ]
    )
    for generation, prefill in zip(generations, prefills, strict=True):
        np.testing.assert_allclose(prefill.logprobs, generation.logprobs, atol=1.0)
    engine.close()
