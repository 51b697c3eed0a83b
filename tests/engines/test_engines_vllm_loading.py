"""What the engine makes of vLLM's word about its weights; vLLM itself is played."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from vllm_support import collect

from prime_core.api import EngineError, GenerationRequest, PolicyFiles, PrefillRequest
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.loading import Check, Start
from prime_core.engines.vllm.plugin import VllmParams

Load = Callable[[int, torch.Tensor], bytes]


class Driver:
    """Says that it loaded whatever it is told to say."""

    def __init__(self) -> None:
        self.says: dict[str, Any] | EngineError = {"weights": "first"}
        self.asked: list[str] = []
        self.closed = False

    def load(self, start: Start, path: Path | None, check: Check) -> Future[dict[str, Any]]:
        self.asked.append("start" if path is None else "reload")
        assert path is None or (path / "weights-00000.safetensors").exists()
        result: Future[dict[str, Any]] = Future()
        try:
            if isinstance(self.says, EngineError):
                raise self.says
            check(self.says)
            result.set_result(self.says)
        except EngineError as error:
            result.set_exception(error)
        return result

    def close(self) -> None:
        self.closed = True


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
    # an architecture that transformers doesn't know: which tensors it has isn't known either
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 64}')

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
    assert engine._loaded().version == 1
    driver.says = {"weights": "second"}
    assert load(3, torch.ones(8, dtype=stored(engine))) == bytes([3]) * 32
    assert driver.asked == ["start", "reload", "reload"]


def test_the_same_weights_may_be_loaded_again(engine: VllmEngine, load: Load) -> None:
    for version in (1, 2, 3):
        assert load(version, torch.zeros(8, dtype=stored(engine))) == bytes([version]) * 32


def test_an_update_may_round_to_nothing_in_another_dtype(engine: VllmEngine, load: Load) -> None:
    other = torch.bfloat16 if stored(engine) is torch.float32 else torch.float32
    load(1, torch.zeros(8, dtype=other))
    assert load(2, torch.full((8,), 1e-30, dtype=other)) == bytes([2]) * 32
    assert engine._loaded().version == 2


def test_a_load_that_fails_leaves_the_old_policy_in_place(
    engine: VllmEngine, driver: Driver, load: Load
) -> None:
    load(1, torch.zeros(8, dtype=stored(engine)))
    driver.says = EngineError("it died", where="here", fix="look")
    with pytest.raises(EngineError, match="it died"):
        load(2, torch.ones(8, dtype=stored(engine)))
    assert engine._loaded().version == 1


@pytest.fixture
def tiny(model_dirs: dict[str, Path], tmp_path: Path) -> Callable[..., PolicyFiles]:
    """A policy of a model with changed weights."""

    def make(variant: str, **changes: torch.Tensor | None) -> PolicyFiles:
        directory = tmp_path / variant
        shutil.copytree(model_dirs[variant], directory)
        path = directory / "model.safetensors"
        tensors = {**load_file(path), **changes}
        save_file({name: each for name, each in tensors.items() if each is not None}, path)
        return PolicyFiles(1, directory, (path,), bytes(32))

    return make


KEY = "model.layers.0.self_attn.k_proj.weight"


@pytest.mark.parametrize(
    ("variant", "changes", "what"),
    [
        ("tied", {KEY: None}, f"{KEY} is missing"),  # vLLM leaves that part of qkv as it was made
        ("tied", {KEY: torch.zeros(3)}, rf"{KEY} is \(3,\), not"),
        ("tied", {"model.extra": torch.zeros(3)}, "model.extra isn't part of the model"),
        ("untied", {"lm_head.weight": None}, "lm_head.weight is missing"),
    ],
)
def test_the_first_weights_are_held_to_the_config(
    engine: VllmEngine,
    driver: Driver,
    tiny: Callable[..., PolicyFiles],
    variant: str,
    changes: dict[str, torch.Tensor | None],
    what: str,
) -> None:
    with pytest.raises(EngineError, match=what):
        engine.load(tiny(variant, **changes))
    assert not driver.asked


def test_a_tied_head_is_left_out_or_equal(
    engine: VllmEngine, tiny: Callable[..., PolicyFiles], model_dirs: dict[str, Path]
) -> None:
    """vLLM would use another one, against the config; no load may bring it."""
    embedding = load_file(model_dirs["tied"] / "model.safetensors")["model.embed_tokens.weight"]
    policy = tiny("tied", **{"lm_head.weight": embedding.clone()})
    engine.load(policy)
    other = policy.model_dir / "other.safetensors"
    head = embedding.clone()
    head[-1, -1] += 1
    save_file({**load_file(policy.weights[0]), "lm_head.weight": head}, other)
    with pytest.raises(EngineError, match=r"lm_head\.weight differs from model\.embed_tokens"):
        engine.load(replace(policy, weights=(other,)))


def test_a_policy_whose_model_is_gone_says_so(engine: VllmEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.zeros(3)}, path)
    with pytest.raises(EngineError, match="can't be read"):
        engine.load(PolicyFiles(1, tmp_path / "gone", (path,), bytes(32)))
    with pytest.raises(EngineError, match="no weights"):
        engine.load(PolicyFiles(1, tmp_path, (), bytes(32)))


def test_a_closed_engine_says_so(engine: VllmEngine, tmp_path: Path) -> None:
    engine.close()
    with pytest.raises(EngineError, match="was closed"):
        engine.prefill([PrefillRequest((1, 2), 1, 1.0)])
    with pytest.raises(EngineError, match="was closed"):
        engine.load(PolicyFiles(1, tmp_path, (), bytes(32)))
    with pytest.raises(EngineError, match="was closed"):
        collect(engine, [GenerationRequest("0", "0", (1,), 0, 0, 1, 1.0)])
