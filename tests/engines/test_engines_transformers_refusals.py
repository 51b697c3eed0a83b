"""What the transformers engine refuses, and where its turns end."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from test_engines_transformers import collect, make_requests

from prime_core.api import EngineError, GenerationRequest, PrefillRequest
from prime_core.engines.model_files import local_policy
from prime_core.engines.stop_tokens import stop_tokens
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams


def test_requests_that_no_model_can_serve_are_refused(make_engine: Any) -> None:
    engine = make_engine()
    for request, word in [
        (GenerationRequest("r", "g", (1,) * 1000, 0, 0, 30, 1.0), "context of 1024"),
        (GenerationRequest("r", "g", (), 0, 0, 30, 1.0), "0 prompt tokens"),
        (GenerationRequest("r", "g", (1,), 0, 0, 0, 1.0), "max_tokens"),
        (GenerationRequest("r", "g", (1,), 1 << 63, 0, 3, 1.0), "63 bits"),
        (GenerationRequest("r", "g", (1,), -1, 0, 3, 1.0), "seed -1"),
    ]:
        with pytest.raises(EngineError, match=word):
            engine.generate_now([request])
    with pytest.raises(EngineError, match="start 0"):
        engine.prefill([PrefillRequest((1, 2), 0, 1.0)])


def test_weights_of_nan_answer_nothing(model_dirs: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "nan.safetensors"
    tensors = load_file(model_dirs["tied"] / "model.safetensors")
    tensors["model.norm.weight"][:] = float("nan")
    save_file(tensors, path)
    engine = TransformersEngine(TransformersParams())
    engine.load(replace(local_policy(model_dirs["tied"]), weights=(path,)))
    with pytest.raises(EngineError, match="logits hold NaN"):
        engine.prefill([PrefillRequest((1, 2, 3), 1, 1.0)])
    with pytest.raises(EngineError, match="logits hold NaN"):
        engine.generate_now(make_requests(4))
    engine.close()


@pytest.mark.parametrize("ids", ["2", 2.0, [], [1, None], True])
def test_an_end_token_that_is_none_is_refused(tmp_path: Path, ids: object) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))
    with pytest.raises(EngineError, match="eos_token_id"):
        stop_tokens(tmp_path)


def test_end_tokens_of_a_nested_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"text_config": {"eos_token_id": 7}}))
    assert stop_tokens(tmp_path) == {7}
    path.write_text(json.dumps({"text_config": None}))
    with pytest.raises(EngineError, match="no EOS token"):
        stop_tokens(tmp_path)


def test_every_eos_token_of_the_generation_config_ends_a_turn(
    model_dirs: dict[str, Path], tmp_path: Path
) -> None:
    directory = tmp_path / "model"
    shutil.copytree(model_dirs["tied"], directory)
    path = directory / "generation_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "eos_token_id": [settings["eos_token_id"], 3, 5]}))
    engine = TransformersEngine(TransformersParams())
    engine.load(local_policy(directory))
    stops = {settings["eos_token_id"], 3, 5}
    ends = {g.token_ids[-1] for g in engine.generate_now(make_requests(80, max_tokens=60))}
    assert len(ends & stops) >= 2
    path.unlink()
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "eos_token_id": None}))
    other = TransformersEngine(TransformersParams())
    with pytest.raises(EngineError, match="no EOS token"):
        other.load(local_policy(directory))
    engine.close()
    other.close()


def test_an_engine_without_a_policy_says_so() -> None:
    engine = TransformersEngine(TransformersParams())
    with pytest.raises(EngineError, match="no policy is loaded"):
        collect(engine, make_requests(4))
    engine.close()
