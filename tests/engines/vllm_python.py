"""Finds an interpreter with vLLM: `PRIME_VLLM_PYTHON`, that of `make vllm`, or this one."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def vllm_python() -> Path | None:
    """The interpreter for the engine's `python`; None for this one. Skips where there is none."""
    named = os.environ.get("PRIME_VLLM_PYTHON")
    if named:
        return Path(named)
    made = ROOT / ".venv-vllm" / "bin" / "python"
    if made.exists():
        return made
    if find_spec("vllm") is None:
        pytest.skip("vLLM isn't installed; `make vllm` installs it")
    return None
