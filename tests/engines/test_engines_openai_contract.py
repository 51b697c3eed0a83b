"""The engine `openai` and the engines' contract: the tests that need no token ids apply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from endpoint_server import EndpointServer, said

from prime_core.api import GenerationRequest, InferenceEngine, Message
from prime_core.engines.openai.engine import OpenAIEngine
from prime_core.engines.openai.plugin import OpenAIParams
from prime_core.testing.contract import InferenceEngineContract as Contract
from prime_core.testing.contract.inference_engine import generate


class TestTheEndpointKeepsTheContract:
    @pytest.fixture
    def engine(self) -> Iterator[InferenceEngine]:
        with EndpointServer(lambda body: said("4", "stop")) as server:
            params = {"base_url": server.url, "model": "toy", "backoff_s": 0.001}
            engine = OpenAIEngine(OpenAIParams.model_validate(params))
            yield engine
            engine.close()

    @pytest.fixture
    def requests(self) -> list[GenerationRequest]:
        message = (Message("user", "2+2?"),)
        whole = GenerationRequest("", "", (), 1, 0, 9, 0.5, messages=message)
        return [
            replace(whole, id=f"g{group}/{sample}", group_id=f"g{group}", seed=group * 9 + sample)
            for group in range(5)
            for sample in range(2)
        ]

    test_has_every_member = Contract.test_has_every_member
    test_says_what_it_can_prove = Contract.test_says_what_it_can_prove
    test_an_empty_stream_ends = Contract.test_an_empty_stream_ends
    test_cancelling_a_group_leaves_the_others_whole = (
        Contract.test_cancelling_a_group_leaves_the_others_whole
    )

    def test_one_whole_answer_per_request(
        self, engine: InferenceEngine, requests: list[GenerationRequest]
    ) -> None:
        found = generate(engine, requests)
        assert {each.text for each in found.values()} == {"4"}
