"""Estimates follow from the config and the headers of the model's files."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from prime_core.config.load import load
from prime_core.config.sections import RunConfig
from prime_core.run.estimates import estimates, warnings
from prime_core.run.model_shape import read_shape

SETTINGS = {
    "hidden_size": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "intermediate_size": 16,
    "vocab_size": 32,
    "tie_word_embeddings": True,
}


def config(directory: Path, *overrides: str) -> RunConfig:
    path = directory / "run.toml"
    path.write_text('[model]\npath = "m"\n[[environments]]\nuse = "a"\n')
    given = [f"model.path={directory}", f"run.dir={directory / 'run'}", *overrides]
    return load(path, given, check_files=False).config


def write_safetensors(path: Path, shapes: dict[str, list[int]]) -> None:
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            **{
                name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
                for name, shape in shapes.items()
            },
        }
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)


def test_parameters_are_counted_from_headers_with_a_tied_head_once(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    write_safetensors(tmp_path / "a.safetensors", {"x": [32, 8], "lm_head.weight": [32, 8]})
    write_safetensors(tmp_path / "b.safetensors", {"y": [5], "scalar": []})
    shape = read_shape(config(tmp_path))
    assert shape is not None
    assert (shape.parameters, shape.kv_width, shape.layers) == (32 * 8 + 5 + 1, 4, 3)


def test_without_weights_config_json_gives_an_estimate(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    shape = read_shape(config(tmp_path))
    assert shape is not None
    block = 2 * 8 * (8 + 4) + 3 * 8 * 16 + 2 * 8
    assert shape.parameters == 3 * block + 32 * 8 + 8


def gguf(tensors: dict[str, list[int]]) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    def number(key: str, value: int) -> bytes:
        return text(key) + struct.pack("<II", 4, value)

    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
        number("llama.attention.head_count", 4),
        number("llama.attention.head_count_kv", 2),
        number("llama.embedding_length", 8),
        number("llama.block_count", 3),
    ]
    infos = [
        text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, 0)
        for name, shape in tensors.items()
    ]
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(infos), len(pairs))
    return head + b"".join(pairs) + b"".join(infos)


def test_a_gguf_header_tells_the_shape(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(gguf({"token_embd.weight": [8, 32], "b": [7]}))
    shape = read_shape(config(tmp_path, "model.gguf=x.gguf"))
    assert shape is not None
    assert (shape.parameters, shape.vocabulary, shape.kv_width) == (8 * 32 + 7, 32, 4)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"hidden_size": 3}', b"null"])
def test_files_that_cant_be_read_leave_the_shape_unknown(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_bytes(content)
    (tmp_path / "x.gguf").write_bytes(content)
    assert read_shape(config(tmp_path)) is None
    assert read_shape(config(tmp_path, "model.gguf=x.gguf")) is None


def test_amounts_follow_their_formulas(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    write_safetensors(tmp_path / "a.safetensors", {"x": [1000]})
    overrides = (
        "trainer.groups_per_step=12",
        "trainer.group_size=4",
        "engine.max_tokens=100",
        "engine.max_prompt_tokens=50",
        "engine.groups_per_submission=5",
        "trainer.ranks=2",
        "model.dtype=bfloat16",
        "engine.with.batch_size=3",
        "trainer.steps=3",
    )
    amounts = {each.name: each.amount for each in estimates(config(tmp_path, *overrides))}
    assert amounts["rollouts per step"] == 48
    assert amounts["generated tokens per step"] == 4800
    assert amounts["trained tokens per step"] == 7200
    assert amounts["files per step"] == 3 * 4 + 1 + 3
    assert amounts["trainer states per rank"] == 1000 * 16 // 2
    assert amounts["engine per worker"] == 2000 + 3 * 150 * 3 * 2 * 4 * 2
    assert amounts["disk for policies"] == 4 * 2000
    assert amounts["disk for checkpoints"] == 3 * 12000
    with_kl = estimates(config(tmp_path, *overrides, "loss.kl_coef=0.1"))
    assert {each.name: each.amount for each in with_kl}["trainer states per rank"] == 9000


def test_warnings_name_what_is_unwise(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    write_safetensors(tmp_path / "a.safetensors", {"x": [10**9, 10**6]})
    unwise = config(
        tmp_path,
        "engine.groups_per_submission=99",
        "trainer.warmup_steps=200",
        "trainer.threads=5000",
    )
    said = "\n".join(warnings(unwise, estimates(unwise)))
    for words in ("of memory wanted", "of disk wanted", "5001 torch threads", "99 groups", "lr is"):
        assert words in said
