"""The engine `vllm` on a GPU, with CUDA graphs: the contract, commitments, speed, memory.

`pytest -m gpu -s -W default tests/gpu`; made to end within ten minutes on one H200. Figures are
printed, and kept under $OUT where that is set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from gpu_support import collect, make_requests, report

from prime_core.api import InferenceEngine, PolicyFiles, PrefillRequest
from prime_core.engines.model_files import local_policy
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.testing.contract import InferenceEngineContract
from prime_core.toploc import ProofBuilder, Thresholds, verify_proofs

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM isn't installed"),
]

VOCAB = 4096
LARGE_VOCAB = 151_936


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PolicyFiles]:
    """Two versions of one small model; heads of 64, which every attention kernel has."""
    root = tmp_path_factory.mktemp("models")
    first, second = (
        local_policy(
            build_tiny_model(
                root / name,
                seed=seed,
                hidden=256,
                layers=4,
                heads=4,
                vocab=VOCAB,
                initializer_range=0.1,
            )
        )
        for seed, name in enumerate(("first", "second"))
    )
    return {
        "first": replace(first, version=1, digest=b"\1" * 32),
        "second": replace(first, version=2, weights=second.weights, digest=b"\2" * 32),
    }


def make_engine(**changes: Any) -> VllmEngine:
    params = {
        "dtype": "bfloat16",
        "compiled": True,
        "batch_size": 64,
        "kv_cache_gib": 4.0,
        "gpu_memory": 0.3,  # several engines share the GPU
        "max_batched_tokens": 512,
    }
    return VllmEngine(VllmParams.model_validate({**params, **changes}))


@pytest.fixture(scope="module")
def compiled(policies: dict[str, PolicyFiles]) -> Iterator[VllmEngine]:
    """Compiled, with CUDA graphs."""
    engine = make_engine(hidden_states=True)
    engine.load(policies["first"])
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def exact(policies: dict[str, PolicyFiles]) -> Iterator[VllmEngine]:
    """In float32: there a token is the same in every batch, as the contract wants it."""
    engine = make_engine(hidden_states=True, dtype="float32")
    engine.load(policies["first"])
    yield engine
    engine.close()


class TestVllmKeepsTheContractOnAGpu(InferenceEngineContract):
    tolerance: ClassVar[float] = 1e-2  # products of matrices may be cut to TensorFloat-32

    @pytest.fixture
    def engine(self, exact: VllmEngine) -> InferenceEngine:
        return exact

    @pytest.fixture
    def policy(self, policies: dict[str, PolicyFiles]) -> PolicyFiles:
        return policies["first"]


@pytest.mark.parametrize("batch", [3, 33])
def test_rollouts_of_cuda_graphs_verify_under_transformers(
    compiled: VllmEngine, policies: dict[str, PolicyFiles], batch: int
) -> None:
    """Batches that no captured graph fits: rows of the padding would break every commitment."""
    requests = [
        replace(each, commitment=ProofBuilder()) for each in make_requests(batch, 44, prompt=700)
    ]
    found = collect(compiled, requests)
    judge = TransformersEngine(TransformersParams(dtype="bfloat16"))
    judge.load(policies["first"])
    asked = [
        PrefillRequest(
            (*each.token_ids, *found[each.id].token_ids),
            len(each.token_ids),
            1.0,
            seed=each.seed,
            positions=tuple(range(len(found[each.id].token_ids))),
        )
        for each in requests
    ]
    accepted, won, errors = [], [], []
    for request, prefill in zip(requests, judge.prefill(asked), strict=True):
        assert isinstance(request.commitment, ProofBuilder)
        assert prefill.draws is not None
        rows = torch.from_numpy(np.array(prefill.hidden_states)).bfloat16()
        verdicts = verify_proofs(rows, request.commitment.finish(), Thresholds())
        accepted += [verdict.accepted for verdict in verdicts]
        won.append(prefill.draws.race_gaps == 0)
        errors.append(np.abs(prefill.logprobs - np.array(found[request.id].logprobs)))
    judge.close()
    share, difference = float(np.concatenate(won).mean()), np.concatenate(errors)
    report(
        f"equality, batch {batch}",
        {
            "equal_tokens": share,
            "logprob_max": float(difference.max()),
            "logprob_mean": float(difference.mean()),
            "accepted": f"{sum(accepted)}/{len(accepted)}",
        },
    )
    assert all(accepted)
    assert share > 0.95


def test_graphs_and_eager_agree(compiled: VllmEngine, policies: dict[str, PolicyFiles]) -> None:
    requests = make_requests(16, 44, max_tokens=32)
    eager = make_engine(compiled=False)
    eager.load(policies["first"])
    ours, theirs = collect(compiled, requests), collect(eager, requests)
    eager.close()
    first = [ours[each.id].token_ids[0] == theirs[each.id].token_ids[0] for each in requests]
    assert sum(first) >= 15


def test_new_weights_answer_under_the_old_graphs(
    compiled: VllmEngine, policies: dict[str, PolicyFiles]
) -> None:
    """And memory stays where it was over thirty updates."""
    requests = make_requests(16, 44, max_tokens=16)
    before = collect(compiled, requests)
    free = []
    for update in range(30):
        name = ("second", "first")[update % 2]
        assert compiled.load(policies[name]) == policies[name].digest
        found = collect(compiled, requests)
        same = all(found[each.id].token_ids == before[each.id].token_ids for each in requests)
        assert same == (name == "first")
        free.append(torch.cuda.mem_get_info()[0])
    assert abs(free[-1] - free[4]) < 64 << 20


def test_throughput_with_and_without_commitments(tmp_path: Path) -> None:
    """A model of 1.5B parameters with arbitrary weights; the figures are what counts."""
    model = build_tiny_model(
        tmp_path / "large",
        hidden=1536,
        layers=28,
        heads=12,
        kv_heads=2,
        intermediate=8960,
        vocab=LARGE_VOCAB,
        max_positions=4096,
    )
    engine = make_engine(batch_size=256, kv_cache_gib=32.0, max_batched_tokens=8192)
    engine.load(local_policy(model))
    figures: dict[str, Any] = {}
    for batch in (1, 32, 256):
        requests = make_requests(batch, 44, max_tokens=256)
        collect(engine, requests)
        for name in ("plain", "committed"):
            asked = requests
            if name == "committed":
                asked = [replace(each, commitment=ProofBuilder()) for each in requests]
            started = time.perf_counter()
            found = collect(engine, asked)
            seconds = time.perf_counter() - started
            tokens = sum(len(each.token_ids) for each in found.values())
            figures[f"{name}, batch {batch}"] = round(tokens / seconds)
            if name == "committed":
                for each in asked:
                    assert isinstance(each.commitment, ProofBuilder)
                    assert each.commitment.rows == len(found[each.id].token_ids)
    engine.close()
    report("tokens per second", figures)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("shares", ["tensor_parallel", "pipeline_parallel"])
def test_two_gpus_report_once(
    compiled: VllmEngine, policies: dict[str, PolicyFiles], shares: str
) -> None:
    requests = [replace(each, commitment=ProofBuilder()) for each in make_requests(8, 44)]
    engine = make_engine(compiled=False, hidden_states=True, **{shares: 2})
    engine.load(policies["first"])
    found = collect(engine, requests)
    prefills = engine.prefill(
        [
            PrefillRequest((*each.token_ids, *found[each.id].token_ids), len(each.token_ids), 1.0)
            for each in requests
        ]
    )
    engine.close()
    for request, prefill in zip(requests, prefills, strict=True):
        generation = found[request.id]
        assert isinstance(request.commitment, ProofBuilder)
        assert request.commitment.rows == len(generation.token_ids)
        rows = torch.from_numpy(np.array(prefill.hidden_states)).bfloat16()
        verdicts = verify_proofs(rows, request.commitment.finish(), Thresholds())
        assert all(verdict.accepted for verdict in verdicts)
