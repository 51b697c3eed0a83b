"""A model directory as vLLM wants it: the run's model files beside one version's weights.

Used by `engine`; links only, nothing is copied.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from prime_core.api import EngineError, PolicyFiles
from prime_core.engines.fitting import Fit, fit_of

_PREFIX = "version-"


def assemble(policy: PolicyFiles, home: Path) -> Path:
    """A directory of links under `home` to the policy's files; the same one for the same files.

    Raises:
        EngineError: the model's directory or `home` can't be read or written.
    """
    try:
        return _assemble(policy, home)
    except OSError as error:
        raise EngineError(
            f"the policy's files can't be put together: {error}",
            where=str(policy.model_dir),
            fix="prepare the run again, and look whether the disk is full",
        ) from error


def _assemble(policy: PolicyFiles, home: Path) -> Path:
    target = home / f"{_PREFIX}{policy.version}-{policy.digest.hex()[:16]}"
    wanted = {
        path.name: path
        for path in policy.model_dir.iterdir()
        if path.is_file() and path.suffix != ".safetensors"
    }
    wanted |= {f"weights-{n:05d}.safetensors": path for n, path in enumerate(policy.weights)}
    target.mkdir(exist_ok=True)
    for found in target.iterdir():
        if found.name not in wanted or found.readlink() != wanted[found.name].resolve():
            found.unlink()
    for name, path in wanted.items():
        if not (target / name).is_symlink():
            (target / name).symlink_to(path.resolve())
    return target


def prune(home: Path, keep: Collection[Path | None]) -> None:
    """Remove the directories of other versions; their links would pile up over a long run."""
    for directory in home.glob(f"{_PREFIX}*"):
        if directory not in keep:
            shutil.rmtree(directory)


def fit_in(model_dir: Path, context: int | None) -> tuple[Fit, int]:
    """What the model can be asked, and the longest sequence.

    Args:
        context: the longest sequence where it isn't the model's own.

    Raises:
        EngineError: config.json can't be read, doesn't say, or the model was made for less.
    """
    config = _read(model_dir / "config.json")
    own = fit_of(config).context
    if context is not None and isinstance(own, int) and context > own and not _is_scaled(config):
        raise EngineError(
            f"max_model_len is {context}, and the model was made for {own} positions",
            where=str(model_dir),
            fix=f"lower the engine's max_model_len to {own}, or leave it out",
        )
    fit = fit_of(config, context)
    if not isinstance(fit.context, int):
        raise EngineError(
            "config.json names no max_position_embeddings",
            where=str(model_dir),
            fix="set the engine's max_model_len",
        )
    return fit, fit.context


def _is_scaled(config: Mapping[str, Any]) -> bool:
    """Whether positions are stretched by a factor: vLLM knows how far, we don't."""
    inner = config.get("text_config") or config
    text = json.dumps([inner.get("rope_scaling"), inner.get("rope_parameters")])
    return re.search(r'"((long|short)_)?factor":', text) is not None  # no partial_rotary_factor


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError) as error:
        raise EngineError(
            f"it can't be read: {error}", where=str(path), fix="prepare the run again"
        ) from error
    return found
