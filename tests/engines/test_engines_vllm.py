"""The engine `vllm` against real vLLM: the contract, and equality with the transformers engine."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from merging_tokenizer import build_merging_model
from vllm_support import START_S, collect, make_requests, vllm_python

from prime_core.api import (
    EngineError,
    Generation,
    GenerationRequest,
    InferenceEngine,
    PolicyFiles,
    PrefillRequest,
)
from prime_core.engines.model_files import local_policy
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.testing.contract import InferenceEngineContract
from prime_core.toploc import ProofBuilder, build_proofs

pytestmark = pytest.mark.vllm


class TestVllmKeepsTheContract(InferenceEngineContract):
    tolerance: ClassVar[float] = 1e-3

    @pytest.fixture
    def engine(self, vllm_engine: VllmEngine) -> InferenceEngine:
        return vllm_engine

    @pytest.fixture
    def policy(self, vllm_policies: dict[str, PolicyFiles]) -> PolicyFiles:
        return vllm_policies["first"]


def test_both_engines_generate_the_same(
    vllm_engine: VllmEngine, vllm_reference: TransformersEngine
) -> None:
    """More requests than places, prompts longer than a chunk: batches of another make-up."""
    requests = make_requests(longest=150)
    ours, theirs = collect(vllm_engine, requests), collect(vllm_reference, requests)
    for request in requests:
        mine, other = ours[request.id], theirs[request.id]
        assert mine.token_ids == other.token_ids
        assert mine.finish_reason == other.finish_reason
        assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert mine.hidden_states is not None
        assert other.hidden_states is not None
        np.testing.assert_allclose(mine.hidden_states, other.hidden_states, atol=1e-4)


def test_both_engines_prefill_the_same(
    vllm_engine: VllmEngine, vllm_reference: TransformersEngine
) -> None:
    requests = make_requests(12, longest=150)
    said = collect(vllm_reference, requests)
    asked = [
        PrefillRequest(
            (*request.token_ids, *said[request.id].token_ids),
            len(request.token_ids),
            request.temperature,
            top=3,
            seed=request.seed,
            positions=tuple(range(len(said[request.id].token_ids))),
        )
        for request in requests
    ]
    for mine, other in zip(vllm_engine.prefill(asked), vllm_reference.prefill(asked), strict=True):
        np.testing.assert_allclose(mine.logprobs, other.logprobs, atol=1e-4)
        np.testing.assert_allclose(mine.hidden_states, other.hidden_states, atol=1e-4)
        assert mine.draws is not None
        assert other.draws is not None
        np.testing.assert_allclose(mine.draws.means, other.draws.means, atol=1e-3)
        np.testing.assert_allclose(mine.draws.race_gaps, other.draws.race_gaps, atol=1e-3)
        assert [[token for token, _ in each] for each in mine.top] == [
            [token for token, _ in each] for each in other.top
        ]


def test_commitments_are_those_of_the_hidden_states(vllm_engine: VllmEngine) -> None:
    requests = [replace(each, commitment=ProofBuilder()) for each in make_requests(8)]
    for request in requests:
        found = collect(vllm_engine, [request])[request.id]
        assert isinstance(request.commitment, ProofBuilder)
        assert found.hidden_states is not None
        rows = torch.from_numpy(found.hidden_states).to(torch.bfloat16)
        assert request.commitment.finish() == build_proofs(rows)


def test_new_weights_answer_and_old_keys_do_not(
    vllm_engine: VllmEngine, vllm_policies: dict[str, PolicyFiles]
) -> None:
    """The prompt is in the prefix cache: a reload that kept it would answer with old keys."""
    rng = random.Random(9)
    prompt = tuple(rng.randrange(44) for _ in range(300))
    request = GenerationRequest("0/0", "0", prompt, 3, 0, 8, 0.0)
    before = collect(vllm_engine, [request])["0/0"]
    assert vllm_engine.load(vllm_policies["second"]) == vllm_policies["second"].digest
    after = collect(vllm_engine, [request])["0/0"]
    other = TransformersEngine(TransformersParams())
    other.load(vllm_policies["second"])
    expected = collect(other, [request])["0/0"]
    other.close()
    assert vllm_engine.load(vllm_policies["first"]) == vllm_policies["first"].digest
    again = collect(vllm_engine, [request])["0/0"]
    assert after.token_ids == expected.token_ids
    assert after.logprobs == pytest.approx(expected.logprobs, abs=1e-4)
    assert again.token_ids == before.token_ids
    assert again.logprobs == pytest.approx(before.logprobs, abs=1e-5)


def test_weights_that_do_not_fit_never_reach_vllm(
    vllm_engine: VllmEngine, vllm_policies: dict[str, PolicyFiles], tmp_path: Path
) -> None:
    whole = vllm_policies["second"].weights[0].read_bytes()
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(whole[:-7])
    pid = vllm_engine.pid
    with pytest.raises(EngineError, match="damaged"):
        vllm_engine.load(replace(vllm_policies["second"], weights=(cut,)))
    other = build_merging_model(tmp_path / "other", layers=3, heads=2)
    with pytest.raises(EngineError, match="part of the model"):
        vllm_engine.load(replace(vllm_policies["second"], weights=local_policy(other).weights))
    assert vllm_engine.pid == pid
    assert collect(vllm_engine, make_requests(4))


def starve(pid: int) -> None:
    """No memory beyond what the process has: its next larger array can't be made."""
    used = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (used, used))


STRIKES: dict[str, Callable[[int], None]] = {
    "killed": lambda pid: os.kill(pid, signal.SIGKILL),
    "hung": lambda pid: os.kill(pid, signal.SIGSTOP),
    "out of memory": starve,
}


@pytest.mark.parametrize(
    "kind",
    [
        "killed",
        pytest.param("hung", marks=pytest.mark.slow),
        pytest.param("out of memory", marks=pytest.mark.slow),
    ],
)
def test_a_vllm_that_dies_or_hangs_in_mid_batch_costs_nothing(
    vllm_policies: dict[str, PolicyFiles], tmp_path: Path, kind: str
) -> None:
    """Every token of the stream is the one that would have been, and every row is committed."""
    params = VllmParams(
        python=vllm_python(), hidden_states=True, start_timeout_s=START_S, hang_timeout_s=60.0
    )
    engine = VllmEngine(params, log_dir=tmp_path)
    engine.load(vllm_policies["first"])
    requests = make_requests(16, max_tokens=200)
    # Prompts that need more memory than anything before them.
    late = [
        replace(each, id=f"late {each.id}", group_id=f"late {each.group_id}")
        for each in make_requests(16, longest=900, max_tokens=8, seed=6)
    ]
    told: list[int] = []
    struck = threading.Event()

    def strike(token: int, ended: str) -> None:
        told.append(token)
        if len(told) == 30 and not struck.is_set():
            struck.set()
            assert engine.pid is not None
            STRIKES[kind](engine.pid)

    watched = [
        replace(each, commitment=ProofBuilder(), on_token=strike if index == 8 else None)
        for index, each in enumerate([*requests, *late])
    ]

    async def feed() -> AsyncIterator[GenerationRequest]:
        for request in watched[: len(requests)]:
            yield request
        await asyncio.to_thread(struck.wait)
        for request in watched[len(requests) :]:
            yield request

    async def gather() -> dict[str, Generation]:
        return {each.id: each async for each in engine.generate(feed())}

    found = asyncio.run(gather())
    assert engine.figures["restarts"] == 1
    undisturbed = collect(engine, [*requests, *late])
    assert engine.figures["restarts"] == 1
    for request in watched:
        mine = found[request.id]
        assert mine.token_ids == undisturbed[request.id].token_ids
        assert mine.hidden_states is not None
        assert mine.hidden_states.shape[0] == len(mine.token_ids)
        assert isinstance(request.commitment, ProofBuilder)
        rows = torch.from_numpy(mine.hidden_states).to(torch.bfloat16)
        assert request.commitment.finish() == build_proofs(rows)
    assert told == list(found[watched[8].id].token_ids)
    engine.close()
