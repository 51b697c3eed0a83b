"""What every inference engine keeps: whole streams, seeded sampling, honest log-probabilities.

Authors inherit `InferenceEngineContract` and override `make_engine` and `policy`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from prime_core.api import (
    Generation,
    GenerationRequest,
    InferenceEngine,
    PolicyFiles,
    PrefillRequest,
)
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override

Stream = Sequence[GenerationRequest]


class InferenceEngineContract:
    """Inherit, and override `make_engine` and `policy` (a tiny model will do).

    Attributes:
        max_tokens: new tokens of one request.
        tolerance: of a prefill's log-probability against the generation's own, in nats.
    """

    max_tokens: ClassVar[int] = 12
    tolerance: ClassVar[float] = 1e-3

    @pytest.fixture
    def make_engine(self) -> Callable[[], InferenceEngine]:
        """A function that makes an engine with nothing loaded."""
        made: Callable[[], InferenceEngine] = override("make_engine", "makes the engine")
        return made

    @pytest.fixture
    def policy(self) -> PolicyFiles:
        """The policy that is loaded."""
        files: PolicyFiles = override("policy", "the PolicyFiles of a small model")
        return files

    @pytest.fixture
    def prompts(self) -> Sequence[tuple[int, ...]]:
        """Prompts of different lengths, in ids that the model's vocabulary has."""
        return [(1, 2, 3), (4,), (5, 6, 7, 8, 9, 10), (2, 2), (9, 8, 7, 6, 5)]

    @pytest.fixture
    def requests(self, prompts: Sequence[tuple[int, ...]]) -> Stream:
        """Two seeds a prompt, each prompt a group."""
        return [
            GenerationRequest(
                id=f"g{group}/{sample}",
                group_id=f"g{group}",
                token_ids=prompt,
                seed=1_000_003 * group + sample,
                position=0,
                max_tokens=self.max_tokens,
                temperature=1.0,
            )
            for group, prompt in enumerate(prompts)
            for sample in range(2)
        ]

    @pytest.fixture
    def engine(
        self, make_engine: Callable[[], InferenceEngine], policy: PolicyFiles
    ) -> Iterator[InferenceEngine]:
        """The engine under test, with the policy loaded."""
        engine = make_engine()
        engine.load(policy)
        yield engine
        engine.close()

    def test_has_every_member(self, engine: InferenceEngine) -> None:
        assert missing_members(engine, [InferenceEngine]) == []

    def test_load_names_what_it_read(self, engine: InferenceEngine, policy: PolicyFiles) -> None:
        first, second = engine.load(policy), engine.load(policy)
        assert isinstance(first, bytes)
        assert len(first) == 32, "a digest of 32 bytes"
        assert first == second

    def test_says_what_it_can_prove(self, engine: InferenceEngine) -> None:
        capabilities = engine.capabilities
        assert capabilities.name
        assert capabilities.fingerprint
        assert engine.capabilities == capabilities

    def test_one_whole_generation_per_request(
        self, engine: InferenceEngine, requests: Stream
    ) -> None:
        generations = generate(engine, requests)
        for request in requests:
            generation = generations[request.id]
            count = len(generation.token_ids)
            assert 1 <= count <= request.max_tokens
            assert len(generation.logprobs) == count
            assert all(math.isfinite(p) and p <= 1e-5 for p in generation.logprobs)
            assert generation.finish_reason in ("stop", "length")
            if generation.finish_reason == "length":
                assert count == request.max_tokens
            if generation.hidden_states is not None:
                assert generation.hidden_states.shape[0] == count, "one row per model token"

    def test_the_same_stream_gives_the_same_bits(
        self, engine: InferenceEngine, requests: Stream
    ) -> None:
        first, second = generate(engine, requests), generate(engine, requests)
        for request in requests:
            assert first[request.id].token_ids == second[request.id].token_ids
            assert first[request.id].logprobs == second[request.id].logprobs

    def test_a_completion_can_be_generated_alone(
        self, engine: InferenceEngine, requests: Stream
    ) -> None:
        if not engine.capabilities.seeded_sampling:
            pytest.skip("the engine doesn't claim seeded sampling")
        together = generate(engine, requests)
        for request in requests[::3]:
            alone = generate(engine, [request])[request.id]
            assert alone.token_ids == together[request.id].token_ids
            assert alone.logprobs == pytest.approx(
                together[request.id].logprobs, abs=self.tolerance
            )

    def test_a_completion_can_be_continued(self, engine: InferenceEngine, requests: Stream) -> None:
        """Noise belongs to the position: stopping and going on changes nothing."""
        if not engine.capabilities.seeded_sampling:
            pytest.skip("the engine doesn't claim seeded sampling")
        whole = generate(engine, requests)
        for request in requests[:4]:
            tokens = whole[request.id].token_ids
            if len(tokens) < 2:
                continue
            rest = replace(
                request,
                token_ids=(*request.token_ids, tokens[0]),
                position=1,
                max_tokens=request.max_tokens - 1,
            )
            assert generate(engine, [rest])[request.id].token_ids == tokens[1:]

    def test_seeds_differ(self, engine: InferenceEngine, requests: Stream) -> None:
        stream = [replace(requests[0], id=f"s{seed}", seed=seed) for seed in range(6)]
        found = generate(engine, stream)
        assert len({generation.token_ids for generation in found.values()}) > 1

    def test_temperature_zero_is_greedy(self, engine: InferenceEngine, requests: Stream) -> None:
        stream = [replace(requests[0], id=f"s{s}", seed=s, temperature=0.0) for s in range(3)]
        found = generate(engine, stream)
        assert len({generation.token_ids for generation in found.values()}) == 1

    def test_prefill_finds_the_same_logprobs(
        self, engine: InferenceEngine, requests: Stream
    ) -> None:
        generations = generate(engine, requests)
        asked = [
            PrefillRequest(
                token_ids=[*request.token_ids, *generations[request.id].token_ids],
                start=len(request.token_ids),
                temperature=request.temperature,
            )
            for request in requests
        ]
        for request, prefill in zip(requests, engine.prefill(asked), strict=True):
            generation = generations[request.id]
            assert prefill.logprobs.tolist() == pytest.approx(
                list(generation.logprobs), abs=self.tolerance
            )
            assert prefill.hidden_states.shape[0] == len(generation.token_ids)

    def test_cancelling_a_group_leaves_the_others_whole(
        self, engine: InferenceEngine, requests: Stream
    ) -> None:
        def cancel(request: GenerationRequest) -> None:
            if request.group_id == "g1":
                engine.cancel("g0")

        found = generate(engine, requests, before=cancel)
        for request in requests:
            if request.group_id != "g0":
                assert found[request.id].finish_reason in ("stop", "length")
        again = generate(engine, [requests[-1]])  # a cancelled group leaves nothing behind
        assert again[requests[-1].id].finish_reason in ("stop", "length")

    def test_streams_that_share_a_batch_wait_for_nobody(
        self, engine: InferenceEngine, requests: Stream
    ) -> None:
        """Each stream goes on only after the other's answer, and both are what they were alone."""
        if engine.capabilities.continuous_batch < 2:
            pytest.skip("the engine works off one stream after the other")
        alone = generate(engine, requests)
        halves = requests[::2], requests[1::2]
        found = generate_in_turns(engine, *halves)
        for half, generations in zip(halves, found, strict=True):
            assert set(generations) == {request.id for request in half}
            for request in half:
                assert generations[request.id].token_ids == alone[request.id].token_ids

    def test_an_empty_stream_ends(self, engine: InferenceEngine) -> None:
        assert generate(engine, []) == {}


def generate(
    engine: InferenceEngine,
    requests: Stream,
    before: Callable[[GenerationRequest], None] | None = None,
) -> dict[str, Generation]:
    """Run a stream to its end; every request is answered once."""

    async def feed() -> AsyncIterator[GenerationRequest]:
        for request in requests:
            if before is not None:
                before(request)
            yield request

    async def run() -> list[Generation]:
        return [generation async for generation in engine.generate(feed())]

    generations = asyncio.run(run())
    found = {generation.id: generation for generation in generations}
    assert len(found) == len(generations), "a request was answered twice"
    assert set(found) == {request.id for request in requests}
    return found


def generate_in_turns(
    engine: InferenceEngine, first: Stream, second: Stream
) -> tuple[dict[str, Generation], dict[str, Generation]]:
    """Two streams, each of which asks for one more only once the other has an answer more."""

    async def run() -> tuple[dict[str, Generation], dict[str, Generation]]:
        found: tuple[dict[str, Generation], dict[str, Generation]] = {}, {}
        answered = asyncio.Condition()

        async def feed(own: int, stream: Stream) -> AsyncIterator[GenerationRequest]:
            for index, request in enumerate(stream):
                await others_answered(own, index + own)  # the first stream begins
                yield request
            await others_answered(own, len((first, second)[1 - own]))

        async def others_answered(own: int, needed: int) -> None:
            async with answered:
                await answered.wait_for(lambda: len(found[1 - own]) >= needed)

        async def collect(own: int, stream: Stream) -> None:
            async for generation in engine.generate(feed(own, stream)):
                async with answered:
                    found[own][generation.id] = generation
                    answered.notify_all()

        await asyncio.gather(collect(0, first), collect(1, second))
        return found

    return asyncio.run(run())
