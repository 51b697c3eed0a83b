"""The engine contract: the built-in engine keeps it, and a dishonest one doesn't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prime_core.testing.contract import InferenceEngineContract
from prime_core.testing.contract.inference_engine import generate

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    from prime_core.engines.model_files import local_policy
    from prime_core.engines.tiny_model import build_tiny_model

    folder = tmp_path_factory.mktemp("model") / "tiny"
    return local_policy(build_tiny_model(folder, initializer_range=0.2))


def make():
    from prime_core.engines.transformers.engine import TransformersEngine
    from prime_core.engines.transformers.plugin import TransformersParams

    return TransformersEngine(TransformersParams(batch_size=4, hidden_states=True))


class TestTransformers(InferenceEngineContract):
    @pytest.fixture
    def make_engine(self):
        return make

    @pytest.fixture
    def policy(self, files):
        return files


class Dishonest:
    """An engine that changes what the one below it says."""

    def __init__(self, change):
        self._engine, self._change = make(), change

    def __getattr__(self, name):
        return getattr(self._engine, name)

    async def generate(self, requests):
        async for generation in self._engine.generate(requests):
            for changed in self._change(generation):
                yield changed


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("one_whole_generation_per_request", lambda g: [replace(g, logprobs=g.logprobs[1:])]),
        ("one_whole_generation_per_request", lambda g: [replace(g, logprobs=(1.0,) * 99)]),
        ("one_whole_generation_per_request", lambda g: []),
        ("one_whole_generation_per_request", lambda g: [g, g]),
        (
            "prefill_finds_the_same_logprobs",
            lambda g: [replace(g, logprobs=tuple(p - 0.1 for p in g.logprobs))],
        ),
    ],
)
def test_the_engine_contract_catches(rule, change, files):
    engine = Dishonest(change)
    engine.load(files)
    contract = InferenceEngineContract()
    requests = InferenceEngineContract.requests.__wrapped__(contract, [(1, 2, 3)])
    with pytest.raises(AssertionError):
        getattr(contract, f"test_{rule}")(engine, requests)


def test_generate_of_nothing(files):
    engine = make()
    engine.load(files)
    assert generate(engine, []) == {}
    engine.close()
