"""Size of a model from the headers of its files: safetensors, GGUF, or config.json alone.

Called by the estimates of a dry run. Reads headers only, never a tensor, and no library of models.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from prime_core.config.files import model_config, model_dir
from prime_core.config.sections import RunConfig

_HEADER_LIMIT = 100 * 2**20  # bytes; what the safetensors format itself allows
# GGUF value types -> struct codes; 8 is a string, 9 an array
_GGUF_CODES = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What the estimates need.

    Attributes:
        parameters: a tied output embedding counted once.
        kv_width: numbers in one layer's keys, or values, of one token.
        source: what the parameters were counted from.
    """

    parameters: int
    layers: int
    hidden: int
    vocabulary: int
    kv_width: int
    source: str


def read_shape(config: RunConfig) -> ModelShape | None:
    """The shape of the config's model; None where its files don't say."""
    directory = model_dir(config)
    if directory is None:
        stated = config.model.shape
        return _from_layout(None, stated.model_dump()) if stated is not None else None
    try:
        if config.model.gguf is not None:
            return _from_gguf(directory / config.model.gguf)
        settings = model_config(config)
        return _from_layout(directory, settings) if settings is not None else None
    except (OSError, KeyError, TypeError, ValueError, struct.error):
        return None  # an estimate is a courtesy: the engine says what is wrong with the files


def _from_layout(directory: Path | None, settings: dict[str, Any]) -> ModelShape:
    heads = int(settings["num_attention_heads"])
    hidden = int(settings["hidden_size"])
    head = int(settings.get("head_dim") or hidden // heads)
    files = sorted(directory.glob("*.safetensors")) if directory is not None else []
    tied = bool(settings.get("tie_word_embeddings", False))
    kv_width = head * int(settings.get("num_key_value_heads") or heads)
    counted = sum(_count(file, skip_head=tied) for file in files)
    return ModelShape(
        parameters=counted or _estimate(settings, hidden, heads * head, kv_width, tied),
        layers=int(settings["num_hidden_layers"]),
        hidden=hidden,
        vocabulary=int(settings["vocab_size"]),
        kv_width=kv_width,
        source=_source(directory, counted),
    )


def _source(directory: Path | None, counted: int) -> str:
    if counted:
        return "safetensors headers"
    return "model.shape, about" if directory is None else "config.json, about"


def _count(file: Path, *, skip_head: bool) -> int:
    with file.open("rb") as stream:
        (size,) = struct.unpack("<Q", stream.read(8))
        if size > _HEADER_LIMIT:
            raise ValueError("header too large")
        header = json.loads(stream.read(size))
    return sum(
        math.prod(tensor["shape"])
        for name, tensor in header.items()
        if name != "__metadata__" and not (skip_head and name == "lm_head.weight")
    )


def _estimate(settings: dict[str, Any], hidden: int, q: int, kv: int, tied: bool) -> int:
    """Llama-like blocks: attention, gated MLP, two norms; biases are left out."""
    block = 2 * hidden * (q + kv) + 3 * hidden * int(settings["intermediate_size"]) + 2 * hidden
    embedding = int(settings["vocab_size"]) * hidden * (1 if tied else 2)
    return int(settings["num_hidden_layers"]) * block + embedding + hidden


def _from_gguf(file: Path) -> ModelShape:
    # https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    with file.open("rb") as stream:
        magic, version, tensors, pairs = struct.unpack("<4sIQQ", stream.read(24))
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError("not a GGUF file")
        values = {}
        for _ in range(pairs):
            key = _string(stream)
            values[key] = _value(stream, _number(stream, "I"))
        count = vocabulary = 0
        for _ in range(tensors):
            name = _string(stream)
            shape = [_number(stream, "Q") for _ in range(_number(stream, "I"))]
            stream.read(12)  # type and offset
            count += math.prod(shape)
            if name == "token_embd.weight":
                vocabulary = shape[-1]
    family = values["general.architecture"]
    heads, hidden = values[f"{family}.attention.head_count"], values[f"{family}.embedding_length"]
    head = values.get(f"{family}.attention.key_length", hidden // heads)
    return ModelShape(
        parameters=count,
        layers=values[f"{family}.block_count"],
        hidden=hidden,
        vocabulary=vocabulary,
        kv_width=head * values.get(f"{family}.attention.head_count_kv", heads),
        source="GGUF header",
    )


def _number(stream: BinaryIO, code: str) -> int:
    found: int = struct.unpack(f"<{code}", stream.read(struct.calcsize(f"<{code}")))[0]
    return found


def _string(stream: BinaryIO) -> str:
    return stream.read(_number(stream, "Q")).decode("utf-8", errors="replace")


def _value(stream: BinaryIO, kind: int) -> Any:
    if kind == 8:
        return _string(stream)
    if kind == 9:
        inner, length = _number(stream, "I"), _number(stream, "Q")
        if inner in _GGUF_CODES:  # a vocabulary's scores: skipped, not kept
            stream.seek(length * struct.calcsize(f"<{_GGUF_CODES[inner]}"), 1)
        else:
            for _ in range(length):
                _value(stream, inner)
        return None
    return _number(stream, _GGUF_CODES[kind])
