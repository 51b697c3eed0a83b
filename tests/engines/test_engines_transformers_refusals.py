"""What the transformers engine refuses, and where its turns end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_engines_transformers import collect, make_requests

from prime_core.api import EngineError, GenerationRequest, PrefillRequest
from prime_core.engines.model_files import local_policy
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams


def test_requests_that_no_model_can_serve_are_refused(make_engine: Any) -> None:
    engine = make_engine()
    for request, word in [
        (GenerationRequest("r", "g", (1,) * 1000, 0, 0, 30, 1.0), "context of 1024"),
        (GenerationRequest("r", "g", (), 0, 0, 30, 1.0), "0 prompt tokens"),
        (GenerationRequest("r", "g", (1,), 0, 0, 0, 1.0), "max_tokens"),
    ]:
        with pytest.raises(EngineError, match=word):
            engine.generate_now([request])
    with pytest.raises(EngineError, match="start 0"):
        engine.prefill([PrefillRequest((1, 2), 0, 1.0)])


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
