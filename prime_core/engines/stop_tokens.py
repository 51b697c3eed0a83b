"""The end-of-sequence tokens of a model directory, without building the model.

Called by engines and validators, who have to agree on where a turn ends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prime_core.api import EngineError


def stop_tokens(model_dir: Path) -> frozenset[int]:
    """Every EOS id: of generation_config.json where it names one, else of config.json.

    Raises:
        EngineError: there is none, or something else than token ids.
    """
    for name in ("generation_config.json", "config.json"):
        path = model_dir / name
        found = _settings(path)
        nested = found.get("text_config")  # several modalities
        inner = nested if isinstance(nested, dict) else {}
        ids = found.get("eos_token_id", inner.get("eos_token_id"))
        if ids is None:
            continue
        several = ids if isinstance(ids, list) else [ids]
        if not several or any(type(each) is not int for each in several):
            raise EngineError(
                f"eos_token_id is {ids!r}, which is no token id", where=str(path), fix="correct it"
            )
        return frozenset(several)
    raise EngineError(
        "no EOS token: every completion would run into its limit",
        where=str(model_dir),
        fix="set eos_token_id in generation_config.json",
    )


def _settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise EngineError(
            f"not JSON: {error}", where=str(path), fix="restore the run's model directory"
        ) from error
    return found if isinstance(found, dict) else {}
