"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen2 of two layers with a character tokenizer."""
    from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model

    return build_tiny_model(
        tmp_path_factory.mktemp("tiny") / "model",
        symbols=tuple("0123456789+="),
        hidden=32,
        layers=2,
        heads=2,
        chat_template=PLAIN_TEMPLATE,
        max_positions=64,
    )
