"""What the engine makes of vLLM's word about its weights; vLLM itself is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from prime_core.api import EngineError, PolicyFiles
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams

Load = Callable[[int, torch.Tensor], bytes]


class Driver:
    """Says that it loaded whatever it is told to say."""

    def __init__(self) -> None:
        self.says: dict[str, Any] | EngineError = {"weights": "first"}
        self.asked: list[str] = []

    def _answer(self, what: str) -> Future[dict[str, Any]]:
        self.asked.append(what)
        result: Future[dict[str, Any]] = Future()
        if isinstance(self.says, EngineError):
            result.set_exception(self.says)
        else:
            result.set_result(self.says)
        return result

    def restart(self) -> Future[dict[str, Any]]:
        return self._answer("restart")

    def reload(self, path: Path) -> Future[dict[str, Any]]:
        assert (path / "weights-00000.safetensors").exists()
        return self._answer("reload")

    def close(self) -> None:
        self.asked.append("close")


@pytest.fixture(params=["float32", "bfloat16"])
def engine(request: pytest.FixtureRequest) -> Iterator[VllmEngine]:
    engine = VllmEngine(VllmParams(dtype=request.param))
    engine._driver.close()
    engine._driver = Driver()  # type: ignore[assignment]
    yield engine
    engine.close()


@pytest.fixture
def driver(engine: VllmEngine) -> Any:
    return engine._driver


@pytest.fixture
def load(engine: VllmEngine, tmp_path: Path) -> Load:
    (tmp_path / "config.json").write_text("{}")

    def loading(version: int, weights: torch.Tensor) -> bytes:
        path = tmp_path / f"{version}.safetensors"
        save_file({"a": weights}, path)
        return engine.load(PolicyFiles(version, tmp_path, (path,), bytes([version]) * 32))

    return loading


def stored(engine: VllmEngine) -> torch.dtype:
    return torch.float32 if engine.params.dtype == "float32" else torch.bfloat16


def test_a_reload_that_changes_nothing_is_an_error(
    engine: VllmEngine, driver: Driver, load: Load
) -> None:
    load(1, torch.zeros(8, dtype=stored(engine)))
    with pytest.raises(EngineError, match="those of before"):
        load(2, torch.ones(8, dtype=stored(engine)))
    driver.says = {"weights": "second"}
    assert load(3, torch.ones(8, dtype=stored(engine))) == bytes([3]) * 32
    assert driver.asked == ["restart", "reload", "reload"]


def test_the_same_weights_may_be_loaded_again(engine: VllmEngine, load: Load) -> None:
    for version in (1, 2, 3):
        assert load(version, torch.zeros(8, dtype=stored(engine))) == bytes([version]) * 32


def test_an_update_may_round_to_nothing_in_another_dtype(engine: VllmEngine, load: Load) -> None:
    other = torch.bfloat16 if stored(engine) is torch.float32 else torch.float32
    load(1, torch.zeros(8, dtype=other))
    load(2, torch.full((8,), 1e-30, dtype=other))


def test_a_load_that_fails_leaves_the_old_policy_in_place(
    engine: VllmEngine, driver: Driver, load: Load
) -> None:
    load(1, torch.zeros(8, dtype=stored(engine)))
    driver.says = EngineError("it died", where="here", fix="look")
    with pytest.raises(EngineError, match="it died"):
        load(2, torch.ones(8, dtype=stored(engine)))
    assert engine._loaded().version == 1
