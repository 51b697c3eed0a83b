from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.engines.tiny_model import build_tiny_model


@pytest.fixture(scope="session")
def tiny_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen2 with grouped-query attention and a peaked distribution."""
    return build_tiny_model(
        tmp_path_factory.mktemp("trainer") / "model",
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        initializer_range=0.2,
    )
