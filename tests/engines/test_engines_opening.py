"""Engines as a run config opens them: what can't go well is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prime_core.api import RunError
from prime_core.config.sections import RunConfig
from prime_core.engines import open_engine
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.hub import Hub, RunContext


def config(tmp_path: Path, **params: Any) -> RunConfig:
    return RunConfig.model_validate(
        {
            "run": {"dir": str(tmp_path / "run")},
            "model": {"path": "models/none", "dtype": "bfloat16"},
            "engine": {
                "use": "vllm",
                "max_tokens": 48,
                "max_prompt_tokens": 80,
                "threads": 2,
                "with": params,
            },
            "environments": [{"use": "arithmetic"}],
        }
    )


def test_an_engine_too_short_for_the_run_is_refused(tmp_path: Path) -> None:
    """Else the first long rollout would end the worker, again and again."""
    context = RunContext(tmp_path, tmp_path, offline=True)
    with pytest.raises(RunError, match="128 tokens, but the engine's max_model_len is 127"):
        open_engine(config(tmp_path, max_model_len=127), Hub.discover(), context)


def test_dtype_and_threads_come_from_the_run(tmp_path: Path) -> None:
    context = RunContext(tmp_path, tmp_path, offline=True)
    engine = open_engine(config(tmp_path, max_model_len=128), Hub.discover(), context)
    assert isinstance(engine, VllmEngine)
    assert (engine.params.dtype, engine.params.threads) == ("bfloat16", 2)
    engine.close()
    engine = open_engine(config(tmp_path, threads=3), Hub.discover(), context)
    assert isinstance(engine, VllmEngine)
    assert engine.params.threads == 3
    engine.close()
