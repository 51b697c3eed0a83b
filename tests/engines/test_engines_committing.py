"""Commitments that the engine feeds while it decodes: every model token's row, in order."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from test_engines_transformers import collect, make_requests
from test_engines_turns import Answers, again, make_rollouts, play

from prime_core.api import EngineError, GenerationRequest, PrefillRequest
from prime_core.engines.chat import ChatFormat
from prime_core.engines.model_files import load_tokenizer
from prime_core.toploc import ProofBuilder, Thresholds, build_proofs, verify_proofs


@pytest.fixture(scope="module")
def chat(model_dirs: Any) -> ChatFormat:
    return ChatFormat(load_tokenizer(model_dirs["tied"]))


def committed(requests: list[GenerationRequest]) -> tuple[list[GenerationRequest], list[Any]]:
    builders = [ProofBuilder() for _ in requests]
    pairs = zip(requests, builders, strict=True)
    return [dataclasses.replace(one, commitment=builder) for one, builder in pairs], builders


def test_commitments_are_those_of_the_hidden_states(make_engine: Any) -> None:
    engine = make_engine("tied", hidden_states=True, batch_size=8)
    requests, builders = committed(make_requests(16, max_tokens=80))
    lengths = set()
    for generation, builder in zip(collect(engine, requests), builders, strict=True):
        assert builder.rows == len(generation.token_ids)
        assert builder.finish() == build_proofs(generation.hidden_states)
        lengths.add(builder.rows)
    assert len(lengths) > 4, "rows left the batch at different times"


def test_commitments_change_nothing_that_is_generated(make_engine: Any) -> None:
    engine = make_engine("tied", batch_size=8)
    requests = make_requests(16, max_tokens=40)
    with_commitments = collect(engine, committed(requests)[0])
    assert with_commitments == collect(engine, requests)


def test_only_requests_with_a_commitment_are_fed(make_engine: Any) -> None:
    engine = make_engine("tied", hidden_states=True, batch_size=8)
    requests, builders = committed(make_requests(8, max_tokens=40))
    requests[3] = dataclasses.replace(requests[3], commitment=None)
    generations = collect(engine, requests)
    assert builders[3].rows == 0
    assert builders[4].finish() == build_proofs(generations[4].hidden_states)


def test_a_prefill_verifies_them(make_engine: Any) -> None:
    engine = make_engine("tied", batch_size=8)
    requests, builders = committed(make_requests(8, max_tokens=70))
    generations = collect(engine, requests)
    prefills = engine.prefill(
        [
            PrefillRequest(r.token_ids + g.token_ids, len(r.token_ids), 1.0)
            for r, g in zip(requests, generations, strict=True)
        ]
    )
    for prefill, builder in zip(prefills, builders, strict=True):
        verdicts = verify_proofs(prefill.hidden_states, builder.finish(), Thresholds())
        assert all(verdict.accepted for verdict in verdicts), verdicts


def test_several_turns_make_one_sequence_of_rows(make_engine: Any, chat: ChatFormat) -> None:
    engine = make_engine(batch_size=4)
    rollouts = make_rollouts(chat)
    play(engine, chat, Answers(again), rollouts, commit=True)
    assert max(len(rollout.turn_ends) for rollout in rollouts) == 2
    for rollout in rollouts:
        tokens = (*rollout.prompt_tokens, *rollout.tokens)
        prefill = engine.prefill([PrefillRequest(tokens, len(rollout.prompt_tokens), 1.0)])[0]
        rows = prefill.hidden_states[np.array(rollout.mask)]
        verdicts = verify_proofs(rows, rollout.proofs(), Thresholds())
        assert all(verdict.accepted for verdict in verdicts), verdicts


def test_without_commitments_a_rollout_has_no_proofs(make_engine: Any, chat: ChatFormat) -> None:
    rollouts = make_rollouts(chat, 1)
    play(make_engine(batch_size=4), chat, None, rollouts, max_tokens=8)
    assert rollouts[0].proofs() == b""


def test_an_engine_that_feeds_no_rows_is_found_out(make_engine: Any, chat: ChatFormat) -> None:
    rollouts = make_rollouts(chat, 1)
    play(make_engine(batch_size=4), chat, None, rollouts, max_tokens=8)
    rollouts[0].commitment = ProofBuilder()
    with pytest.raises(EngineError, match="0 hidden states for"):
        rollouts[0].proofs()


def test_an_engine_that_cannot_commit_is_refused(make_engine: Any, chat: ChatFormat) -> None:
    class Unable:
        def __init__(self, engine: Any) -> None:
            self.capabilities = dataclasses.replace(engine.capabilities, commitments=False)

    with pytest.raises(EngineError, match="can't commit"):
        play(Unable(make_engine(batch_size=4)), chat, None, make_rollouts(chat, 1), commit=True)


def test_states_that_are_not_finite_stop_the_batch(make_engine: Any) -> None:
    class Spoiled:
        def __init__(self) -> None:
            self.inner = ProofBuilder()

        def add(self, rows: torch.Tensor) -> None:
            rows = rows.clone()
            rows[0, 0] = float("nan")
            self.inner.add(torch.cat([rows] * 32))

    engine = make_engine("tied", batch_size=8)
    request = dataclasses.replace(make_requests(4, max_tokens=8)[0], commitment=Spoiled())

    async def run() -> None:
        async def one() -> Any:
            yield request

        async for _ in engine.generate(one()):
            pass

    with pytest.raises(EngineError, match="NaN or infinity"):
        asyncio.run(run())
