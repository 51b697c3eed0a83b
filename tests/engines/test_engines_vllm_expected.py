"""Which first weights are held to config.json, and what of them may be otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from prime_core.api import EngineError
from prime_core.engines.expected import expected_tensors
from prime_core.engines.model_files import build_model
from prime_core.engines.strict_load import load_weights
from prime_core.engines.vllm.checkpoints import own_entries, read_entries

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"

Tensors = dict[str, torch.Tensor]


def saved(directory: Path, kind: str, **options: Any) -> Path:
    config = AutoConfig.for_model(kind, **{**SMALL, **options})
    AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    return directory


def rewritten(directory: Path, change: Callable[[Tensors], Tensors]) -> Path:
    path = directory / "model.safetensors"
    tensors = {name: each.clone() for name, each in change(load_file(path)).items()}
    save_file(tensors, path, {"format": "pt"})
    return directory


def own_names(directory: Path, dtype: str = "float32") -> set[str]:
    expected = expected_tensors(directory)
    assert expected is not None
    entries = read_entries(sorted(directory.glob("*.safetensors")))
    return set(own_entries(expected, entries, dtype))


def loads(directory: Path, dtype: str = "float32") -> None:
    """As the transformers engine does."""
    load_weights(build_model(directory, dtype=dtype), sorted(directory.glob("*.safetensors")))


def test_names_that_transformers_gives_to_a_class_alone_are_not_known(tmp_path: Path) -> None:
    assert expected_tensors(saved(tmp_path, "gpt_neox")) is None


def test_buffers_that_a_model_computes_itself_are_passed_over(tmp_path: Path) -> None:
    names = own_names(saved(tmp_path, "llama"))
    buffer = "model.layers.0.self_attn.rotary_emb.inv_freq"
    rewritten(tmp_path, lambda tensors: {**tensors, buffer: torch.ones(4)})
    assert own_names(tmp_path) == names
    loads(tmp_path)
    rewritten(tmp_path, lambda tensors: {**tensors, "model.layers.0.odd": torch.ones(4)})
    with pytest.raises(EngineError, match=r"odd isn't part of the model"):
        own_names(tmp_path)
    with pytest.raises(EngineError, match=r"odd isn't part of the model"):
        loads(tmp_path)


def test_a_tied_head_is_the_same_model_stored_or_not(tmp_path: Path) -> None:
    names = own_names(saved(tmp_path, "qwen2", tie_word_embeddings=True))
    rewritten(tmp_path, lambda tensors: {**tensors, HEAD: tensors[EMBEDDING]})
    assert own_names(tmp_path) == names
    loads(tmp_path)
    rewritten(tmp_path, lambda tensors: {**tensors, HEAD: tensors[HEAD] + 1})
    with pytest.raises(EngineError, match="though the config ties them"):
        own_names(tmp_path)


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
def test_a_tied_head_is_compared_as_it_will_be_computed(
    tmp_path: Path, stored: torch.dtype
) -> None:
    """Rounded to bfloat16 the two are equal; as they are, they aren't."""
    saved(tmp_path, "qwen2", tie_word_embeddings=True)
    rewritten(
        tmp_path,
        lambda tensors: {**tensors, HEAD: tensors[EMBEDDING].bfloat16().to(stored)},
    )
    own_names(tmp_path, "bfloat16")
    loads(tmp_path, "bfloat16")
    with pytest.raises(EngineError, match="though the config ties them"):
        own_names(tmp_path, "float32")
    with pytest.raises(EngineError, match="though the config ties them"):
        loads(tmp_path, "float32")


def test_a_tied_head_does_not_stand_for_the_embedding(tmp_path: Path) -> None:
    saved(tmp_path, "qwen2", tie_word_embeddings=True)
    rewritten(
        tmp_path,
        lambda tensors: {
            HEAD if name == EMBEDDING else name: each for name, each in tensors.items()
        },
    )
    for read in (own_names, loads):
        with pytest.raises(EngineError, match=r"embed_tokens.weight is missing \(lm_head.weight"):
            read(tmp_path)


def test_the_first_gpt2_models_lack_a_prefix(tmp_path: Path) -> None:
    names = own_names(saved(tmp_path, "gpt2"))
    prefix = "transformer."
    bare = {"h.0.attn.bias": torch.ones(1, 1, 4, 4)}
    rewritten(tmp_path, lambda found: {n.removeprefix(prefix): t for n, t in found.items()} | bare)
    assert own_names(tmp_path) == names
    rewritten(tmp_path, lambda found: {**found, f"{prefix}wte.weight": found["wte.weight"]})
    with pytest.raises(EngineError, match=r"with and without 'transformer\.'"):
        own_names(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": "two"},
        {"num_attention_heads": 0},
        {"hidden_size": -32},
        {"layer_types": ["x", "y"]},
    ],
)
def test_a_config_that_describes_no_model_is_an_error_of_ours(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = saved(tmp_path, "qwen3") / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(EngineError, match="describes no model"):
        expected_tensors(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"attn_implementation": "flash_attention_2"},
        {"model_type": "zzz", "auto_map": {"AutoConfig": "x.C"}},
        {"hidden_act": "nope"},
    ],
)
def test_a_config_that_asks_for_more_is_not_known_and_nobody_is_asked(
    tmp_path: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(prompt: str = "") -> str:
        raise AssertionError(prompt)

    monkeypatch.setattr("builtins.input", ask)
    path = saved(tmp_path, "llama") / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert expected_tensors(tmp_path) is None
