"""Tiny models and engines, built once a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prime_core.engines.model_files import local_policy
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams

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
