"""Streams through real vLLM: preempted, cancelled, abandoned, fed while they run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from vllm_support import START_S, collect, make_requests, stream, vllm_python

from prime_core.api import (
    EngineError,
    Generation,
    GenerationRequest,
    PolicyFiles,
    PrefillRequest,
)
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.toploc import ProofBuilder, build_proofs

pytestmark = pytest.mark.vllm

TOKENS_IN_CACHE = 1024
_BYTES_A_TOKEN = 2 * 2 * 2 * 32 * 4  # keys and values, 2 layers, 2 heads of 32, float32


@pytest.fixture(scope="module")
def cramped(
    vllm_policies: dict[str, PolicyFiles], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmEngine]:
    """A cache that the batch outgrows: eight sequences start, and not all of them can go on."""
    params = VllmParams(
        python=vllm_python(),
        hidden_states=True,
        batch_size=8,
        max_model_len=512,
        kv_cache_gib=TOKENS_IN_CACHE * _BYTES_A_TOKEN / (1 << 30),
        start_timeout_s=START_S,
    )
    engine = VllmEngine(params, log_dir=tmp_path_factory.mktemp("logs"))
    engine.load(vllm_policies["first"])
    yield engine
    engine.close()


def long_requests(count: int = 16) -> list[GenerationRequest]:
    rng = random.Random(1)
    return [
        GenerationRequest(
            str(index),
            str(index),
            tuple(rng.randrange(44) for _ in range(100)),
            rng.getrandbits(63),
            0,
            200,
            0.7,
        )
        for index in range(count)
    ]


def test_preempted_requests_end_as_they_would_have(
    cramped: VllmEngine, vllm_reference: TransformersEngine
) -> None:
    requests = [replace(each, commitment=ProofBuilder()) for each in long_requests()]
    found = collect(cramped, requests)
    expected = collect(vllm_reference, [replace(each, commitment=None) for each in requests])
    assert cramped.figures["preemptions"] > 0
    assert cramped.figures["window"] < 2 * cramped.params.batch_size
    for request in requests:
        mine, other = found[request.id], expected[request.id]
        assert mine.token_ids == other.token_ids
        assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert mine.hidden_states is not None
        assert other.hidden_states is not None
        np.testing.assert_allclose(mine.hidden_states, other.hidden_states, atol=1e-4)
        assert isinstance(request.commitment, ProofBuilder)
        rows = torch.from_numpy(mine.hidden_states).to(torch.bfloat16)
        assert request.commitment.finish() == build_proofs(rows)


def test_two_engines_share_a_process(
    cramped: VllmEngine, vllm_engine: VllmEngine, vllm_policies: dict[str, PolicyFiles]
) -> None:
    requests = make_requests(8)
    expected = collect(vllm_engine, requests)
    cramped.load(vllm_policies["second"])

    async def gather(engine: VllmEngine) -> list[Generation]:
        return [each async for each in engine.generate(stream(requests))]

    async def both() -> list[list[Generation]]:
        return list(await asyncio.gather(gather(vllm_engine), gather(cramped)))

    ours, others = ({each.id: each for each in found} for found in asyncio.run(both()))
    cramped.load(vllm_policies["first"])
    assert vllm_engine.pid != cramped.pid
    same = {key: each.token_ids for key, each in expected.items()}
    assert {key: each.token_ids for key, each in ours.items()} == same
    assert {key: each.token_ids for key, each in others.items()} != same
    again = {key: each.token_ids for key, each in collect(cramped, requests).items()}
    assert again == same


def test_a_group_prefills_its_prompt_once(vllm_engine: VllmEngine) -> None:
    rng = random.Random(77)
    prompt = tuple(rng.randrange(44) for _ in range(300))
    group = [GenerationRequest(f"{i}", "g", prompt, i, 0, 4, 1.0) for i in range(4)]
    before = vllm_engine.figures["cached_tokens"]
    collect(vllm_engine, group)
    assert vllm_engine.figures["cached_tokens"] - before >= 3 * 256


def test_an_abandoned_stream_leaves_nothing_behind(
    vllm_engine: VllmEngine, vllm_policies: dict[str, PolicyFiles]
) -> None:
    requests = make_requests(16, max_tokens=300)

    async def first_only() -> None:
        generations = vllm_engine.generate(stream(requests))
        await anext(generations)
        await generations.aclose()  # type: ignore[attr-defined]

    asyncio.run(first_only())
    vllm_engine.load(vllm_policies["first"])  # what is cancelled is no reason to wait
    assert len(collect(vllm_engine, make_requests(4))) == 4


def test_cancelled_in_mid_stream_what_is_there_comes_back(vllm_engine: VllmEngine) -> None:
    requests = make_requests(12, max_tokens=900)
    whole = collect(vllm_engine, requests)
    longest = max(requests, key=lambda each: len(whole[each.id].token_ids))
    assert len(whole[longest.id].token_ids) > 300, "it would end by itself: choose another seed"
    counted: list[int] = []

    def count(token: int, ended: str) -> None:
        counted.append(token)
        if len(counted) == 3:
            vllm_engine.cancel(longest.group_id)

    watched = [
        replace(each, commitment=ProofBuilder(), on_token=count if each is longest else None)
        for each in requests
    ]
    found = collect(vllm_engine, watched)
    assert found[longest.id].finish_reason == "cancelled"
    assert list(found[longest.id].token_ids) == counted
    for request in watched:
        mine, undisturbed = found[request.id], whole[request.id]
        length = len(mine.token_ids)
        assert mine.token_ids == undisturbed.token_ids[:length]
        if request.group_id != longest.group_id:
            assert length == len(undisturbed.token_ids)
        assert mine.hidden_states is not None
        assert isinstance(request.commitment, ProofBuilder)
        assert request.commitment.rows == mine.hidden_states.shape[0] == length


def test_new_requests_join_while_others_run(vllm_engine: VllmEngine) -> None:
    """The later ones exist only because an earlier one has ended, and end before the longest."""
    drafts = [replace(each, group_id="long") for each in make_requests(16, max_tokens=900)]
    lengths = {key: len(each.token_ids) for key, each in collect(vllm_engine, drafts).items()}
    longest = max(drafts, key=lambda each: lengths[each.id])
    assert lengths[longest.id] > 300, "it has to outlive the short ones: choose another seed"
    short = [replace(each, id=f"short {each.id}", max_tokens=2) for each in make_requests(4)]
    ended: asyncio.Queue[str] = asyncio.Queue()

    async def feed() -> AsyncIterator[GenerationRequest]:
        yield longest
        for request in short:
            yield request
            await ended.get()

    async def run() -> list[str]:
        order = []
        async for generation in vllm_engine.generate(feed()):
            order.append(generation.id)
            ended.put_nowait(generation.id)
        return order

    assert asyncio.run(run()) == [*(each.id for each in short), longest.id]


def test_a_request_that_cannot_be_served_is_refused_by_name(vllm_engine: VllmEngine) -> None:
    good = make_requests(4)[0]
    for bad, what in (
        (replace(good, token_ids=()), "0 prompt tokens"),
        (replace(good, max_tokens=0), "max_tokens 0"),
        (replace(good, temperature=-1.0), "temperature -1"),
        (replace(good, temperature=float("nan")), "temperature nan"),
        (replace(good, temperature=1e-40), "temperature 1e-40"),
        (replace(good, seed=1 << 63), "isn't within 63 bits"),
        (replace(good, max_tokens=2000), "exceed the context of 1024"),
        (replace(good, token_ids=(1, 1 << 40)), "is none of the model's"),
    ):
        with pytest.raises(EngineError, match=what):
            collect(vllm_engine, [good, bad])
    for sequence, start, what in (
        ((1, 2, 3), 0, "start 0"),
        ((1, 2, -3), 1, "token -3 is none"),
        ((1,) * 1025, 1, "exceed the context"),
    ):
        with pytest.raises(EngineError, match=what):
            vllm_engine.prefill([PrefillRequest(sequence, start, 1.0)])
    assert vllm_engine.figures["restarts"] == 0
    assert collect(vllm_engine, [good])


@pytest.mark.slow
def test_memory_stays_flat_over_a_hundred_updates(
    vllm_engine: VllmEngine, vllm_policies: dict[str, PolicyFiles]
) -> None:
    def resident_kib() -> int:
        status = Path(f"/proc/{vllm_engine.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    sizes = []
    for update in range(100):
        vllm_engine.load(vllm_policies[("second", "first")[update % 2]])
        collect(vllm_engine, make_requests(4, max_tokens=8))
        sizes.append(resident_kib())
    assert max(sizes[90:]) - max(sizes[10:20]) < 32 << 10
