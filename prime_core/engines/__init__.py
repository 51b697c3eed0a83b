"""Inference engines: one plugin each, opened here from a run config."""

from prime_core.engines.opening import engine_choice, open_engine

__all__ = ["engine_choice", "open_engine"]
