"""Tiny models for tests; the builder itself stands in `prime_core.engines.tiny_model`."""

from prime_core.engines.tiny_model import (
    CHATML_TEMPLATE,
    PLAIN_TEMPLATE,
    build_tiny_model,
    build_tokenizer,
)

__all__ = ["CHATML_TEMPLATE", "PLAIN_TEMPLATE", "build_tiny_model", "build_tokenizer"]
