"""Places version 0's model in the run directory: config, tokenizer, one file of weights.

Called by the preparation. Whatever layout the source has (several files, another dtype, a tied
head stored twice), what lands is the same for every run of one config.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.store.layout import MODEL

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

DIGEST = "digest"
WEIGHTS = "model.safetensors"


def place_model(config: RunConfig, cache_dir: Path) -> str:
    """Fill `<run>/model/` once; returns the digest of the source model, hex.

    Raises:
        EngineError: the source can't be found or read.
    """
    from prime_core.engines.model_files import load_tokenizer, model_digest, resolve_model

    target = config.run.dir / MODEL
    if (target / DIGEST).is_file():
        return (target / DIGEST).read_text().strip()
    source = resolve_model(
        config.model.path, config.model.gguf, cache_dir, dtype=config.model.dtype
    )
    scratch = target.with_name(f".{MODEL}.tmp")
    for stale in (scratch, target):
        if stale.exists():
            shutil.rmtree(stale)
    scratch.mkdir(parents=True)
    _copy_config(source, scratch, config.model.dtype)
    load_tokenizer(source, config.model.chat_template).save_pretrained(scratch)
    _merge_weights(source, scratch / WEIGHTS, config.model.dtype)
    digest = model_digest(source)
    (scratch / DIGEST).write_text(digest + "\n")
    scratch.rename(target)
    return digest


def _copy_config(source: Path, target: Path, dtype: str) -> None:
    settings = json.loads((source / "config.json").read_text())
    settings.pop("torch_dtype", None)
    settings["dtype"] = dtype
    (target / "config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")
    # Which tokens end a turn stands here, and for chat models often nowhere else.
    if (source / "generation_config.json").is_file():
        shutil.copyfile(source / "generation_config.json", target / "generation_config.json")


def _merge_weights(source: Path, target: Path, dtype: str) -> None:
    """One safetensors file in the served dtype, without the copy of a tied output embedding."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    from prime_core.engines.model_files import weight_files

    settings = json.loads((source / "config.json").read_text())
    tied = bool(settings.get("tie_word_embeddings", False))
    tensors: dict[str, torch.Tensor] = {}
    for file in weight_files(source):
        with safe_open(str(file), framework="pt") as found:
            for name in found.keys():  # noqa: SIM118 (safe_open isn't a mapping)
                if tied and name == "lm_head.weight":
                    continue
                tensors[name] = found.get_tensor(name).to(getattr(torch, dtype)).contiguous()
    save_file(tensors, str(target), metadata={"format": "pt"})
