"""Policies of real vLLM: odd updates, loads at the wrong time, and what is loaded after a death."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import shutil
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from merging_tokenizer import build_merging_model
from safetensors.torch import load_file, save_file
from vllm_support import START_S, collect, make_requests, stream, vllm_python

from prime_core.api import EngineError, Generation, PolicyFiles, PrefillRequest
from prime_core.engines.model_files import local_policy
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def engine(
    vllm_policies: dict[str, PolicyFiles], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmEngine]:
    """An engine that may be killed: other modules count their restarts."""
    params = VllmParams(python=vllm_python(), batch_size=8, start_timeout_s=START_S)
    engine = VllmEngine(params, log_dir=tmp_path_factory.mktemp("logs"))
    engine.load(vllm_policies["first"])
    yield engine
    engine.close()


def expected(policy: PolicyFiles) -> dict[str, tuple[int, ...]]:
    """The tokens of some requests, of the transformers engine."""
    engine = TransformersEngine(TransformersParams())
    engine.load(policy)
    found = collect(engine, make_requests(8))
    engine.close()
    return {key: each.token_ids for key, each in found.items()}


def said(engine: VllmEngine) -> dict[str, tuple[int, ...]]:
    return {key: each.token_ids for key, each in collect(engine, make_requests(8)).items()}


def changed(policy: PolicyFiles, path: Path, name: str, change: str) -> PolicyFiles:
    """A policy with some values of one tensor changed."""
    tensors = load_file(policy.weights[0])
    flat = tensors[name].view(-1)
    if change == "swapped":  # two words within 512 bytes, whose plain sum stays
        flat[:4] = flat[[2, 3, 0, 1]].clone()
    else:
        flat[0] = torch.nan
    save_file(tensors, path, metadata={"format": "pt"})
    return replace(policy, version=9, digest=bytes([9]) * 32, weights=(path,))


def wait_for_death(engine: VllmEngine) -> str:
    """Kill vLLM while it's idle; what the engine says when it has noticed."""
    assert engine.pid is not None
    said: queue.Queue[str] = queue.Queue()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.put(record.getMessage())

    logger, handler = logging.getLogger("prime_core.engines.vllm"), Handler()
    logger.addHandler(handler)
    os.kill(engine.pid, signal.SIGKILL)
    try:
        return said.get(timeout=60)
    finally:
        logger.removeHandler(handler)


LAYER = "model.layers.0."


@pytest.mark.parametrize(
    "name",
    # on CPUs vLLM keeps all but the last one in a kernel
    [
        f"{LAYER}mlp.down_proj.weight",
        f"{LAYER}self_attn.k_proj.weight",
        "model.embed_tokens.weight",
    ],
)
def test_values_that_change_places_are_an_update(
    engine: VllmEngine, vllm_policies: dict[str, PolicyFiles], tmp_path: Path, name: str
) -> None:
    swapped = changed(vllm_policies["first"], tmp_path / "w", name, "swapped")
    assert engine.load(swapped) == swapped.digest
    assert said(engine) == expected(swapped)
    engine.load(vllm_policies["first"])


def test_weights_of_nan_end_the_request_and_not_vllm(
    engine: VllmEngine, vllm_policies: dict[str, PolicyFiles], tmp_path: Path
) -> None:
    engine.load(changed(vllm_policies["first"], tmp_path / "w", "model.norm.weight", "broken"))
    before = engine.figures["restarts"], engine.pid
    with pytest.raises(EngineError, match="logits hold NaN"):
        collect(engine, make_requests(8))
    with pytest.raises(EngineError, match="logits hold NaN"):
        engine.prefill([PrefillRequest((1, 2, 3, 4), 2, 1.0, seed=3, positions=(0, 1))] * 9)
    engine.load(vllm_policies["first"])
    assert said(engine) == expected(vllm_policies["first"])
    assert (engine.figures["restarts"], engine.pid) == before


def test_another_model_is_not_loaded_while_requests_run(
    engine: VllmEngine, vllm_policies: dict[str, PolicyFiles], tmp_path: Path
) -> None:
    other = replace(local_policy(build_merging_model(tmp_path / "m", seed=2, heads=2)), version=7)
    requests = make_requests(8, max_tokens=300)
    undisturbed = collect(engine, requests)
    refused: list[EngineError] = []
    told: list[int] = []

    def load() -> None:
        try:
            engine.load(other)
        except EngineError as error:
            refused.append(error)

    loading = threading.Thread(target=load)

    def on_token(token: int, ended: str) -> None:
        told.append(token)
        if len(told) == 5:
            loading.start()

    watched = [replace(requests[0], on_token=on_token), *requests[1:]]

    async def run() -> dict[str, Generation]:
        found = {each.id: each async for each in engine.generate(stream(watched))}
        await asyncio.to_thread(loading.join)
        return found

    pid = engine.pid
    found = asyncio.run(run())
    assert {key: each.token_ids for key, each in found.items()} == {
        key: each.token_ids for key, each in undisturbed.items()
    }
    if refused:  # else it came after the last token: nothing was under way
        assert "under way" in refused[0].what
        assert engine.pid == pid
    engine.load(vllm_policies["first"])


def test_after_a_death_vllm_has_the_weights_that_it_had(
    engine: VllmEngine, vllm_policies: dict[str, PolicyFiles], tmp_path: Path
) -> None:
    """Loaded by a reload, read anew after the death; the same fingerprint, else it's refused."""
    path = tmp_path / "w"
    shutil.copy(vllm_policies["second"].weights[0], path)
    policy = replace(vllm_policies["second"], weights=(path,))
    engine.load(policy)
    restarts, steps = engine.figures["restarts"], engine.figures["steps"]
    assert "killed by signal 9; the next request starts it anew" in wait_for_death(engine)
    assert said(engine) == expected(policy)
    assert engine.figures["restarts"] == restarts + 1
    assert engine.figures["steps"] > steps
    # Between batches, when a worker logs them: what was the highest.
    assert engine.figures["running"] == 8
    assert engine.figures["kv_cache_usage"] > 0
    shutil.copy(vllm_policies["first"].weights[0], path)
    wait_for_death(engine)
    with pytest.raises(EngineError, match="other weights than before"):
        collect(engine, make_requests(8))
    engine.load(vllm_policies["first"])
    assert said(engine) == expected(vllm_policies["first"])
