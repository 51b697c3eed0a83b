"""A model directory as vLLM wants it: the run's model files beside one version's weights.

Used by `engine`; links only, nothing is copied.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prime_core.api import EngineError, PolicyFiles


def assemble(policy: PolicyFiles, home: Path) -> Path:
    """A directory of links under `home` to the policy's files; the same one for the same files."""
    target = home / f"{policy.version}-{policy.digest.hex()[:16]}"
    target.mkdir(exist_ok=True)
    for path in policy.model_dir.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            _link(path, target / path.name)
    for path in target.glob("*.safetensors"):
        path.unlink()
    for index, path in enumerate(policy.weights):
        _link(path, target / f"weights-{index:05d}.safetensors")
    return target


def stop_ids(model_dir: Path) -> frozenset[int]:
    """Every EOS id: of generation_config.json where it names one, else of config.json.

    Raises:
        EngineError: neither names one.
    """
    for name in ("generation_config.json", "config.json"):
        found = _read(model_dir / name).get("eos_token_id")
        if found is not None:
            return frozenset([found] if isinstance(found, int) else found)
    raise EngineError(
        "no EOS token: every completion would run into its limit",
        where=str(model_dir),
        fix="set eos_token_id in generation_config.json",
    )


def context_length(model_dir: Path) -> int:
    """Positions that the model has.

    Raises:
        EngineError: config.json doesn't say.
    """
    found = _read(model_dir / "config.json").get("max_position_embeddings")
    if not isinstance(found, int):
        raise EngineError(
            "config.json names no max_position_embeddings",
            where=str(model_dir),
            fix="set the engine's max_model_len",
        )
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise EngineError(
            f"it can't be read: {error}", where=str(path), fix="prepare the run again"
        ) from error
    return found


def _link(path: Path, target: Path) -> None:
    if not target.is_symlink():
        target.symlink_to(path.resolve())
