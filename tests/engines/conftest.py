"""Tiny models and engines, built once a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from merging_tokenizer import build_merging_model
from vllm_support import START_S, vllm_python

from prime_core.api import PolicyFiles
from prime_core.engines.model_files import local_policy
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams

VARIANTS: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": {"tied": False},
    "pad_is_eos": {"pad_is_eos": True},
    "grouped_heads": {"kv_heads": 2},
}


@pytest.fixture(scope="session")
def model_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        name: build_tiny_model(root / name, initializer_range=0.2, **options)
        for name, options in VARIANTS.items()
    }


@pytest.fixture(scope="session")
def make_engine(model_dirs: dict[str, Path]) -> Any:
    """Engines by variant and parameters, each made once."""
    engines: dict[str, TransformersEngine] = {}

    def make(variant: str = "tied", **params: Any) -> TransformersEngine:
        key = f"{variant} {sorted(params.items())}"
        if key not in engines:
            engine = TransformersEngine(TransformersParams(**params))
            engine.load(local_policy(model_dirs[variant]))
            engines[key] = engine
        return engines[key]

    yield make
    for engine in engines.values():
        engine.close()


@pytest.fixture(scope="session")
def vllm_policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PolicyFiles]:
    """Two versions of one run: one model directory, two sets of weights.

    vLLM's attention on CPUs wants heads of 32.
    """
    root = tmp_path_factory.mktemp("vllm-models")
    first, second = (
        local_policy(build_merging_model(root / name, seed=seed, initializer_range=0.2, heads=2))
        for seed, name in enumerate(("first", "second"))
    )
    return {
        "first": replace(first, version=1, digest=b"\1" * 32),
        "second": replace(first, version=2, weights=second.weights, digest=b"\2" * 32),
    }


@pytest.fixture(scope="session")
def vllm_engine(
    vllm_policies: dict[str, PolicyFiles], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmEngine]:
    """One vLLM for all tests; starting it is what costs."""
    params = VllmParams(
        python=vllm_python(),
        hidden_states=True,
        batch_size=16,
        max_batched_tokens=64,
        start_timeout_s=START_S,
    )
    engine = VllmEngine(params, log_dir=tmp_path_factory.mktemp("logs"))
    engine.load(vllm_policies["first"])
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def vllm_reference(vllm_policies: dict[str, PolicyFiles]) -> Iterator[TransformersEngine]:
    """The transformers engine with the same policy."""
    engine = TransformersEngine(TransformersParams(hidden_states=True))
    engine.load(vllm_policies["first"])
    yield engine
    engine.close()
