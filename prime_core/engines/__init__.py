"""Inference engines: one plugin each, opened here from a run config."""

from prime_core.engines.opening import check_trainable, engine_choice, open_engine

__all__ = ["check_trainable", "engine_choice", "open_engine"]
