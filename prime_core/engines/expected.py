"""Which tensors a model's weights must have, from its config.json alone; nothing is loaded.

Called by engines that hand files to somebody else, who may take them as they are: vLLM leaves a
part of a fused layer as it was made where the files lack it, and unties what the config ties.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.api import EngineError
from prime_core.engines.strict_load import tied_names

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the weights must hold.

    Attributes:
        shapes: of every tensor, by name.
        tied: tensors that may be left out, and the one that each equals.
        prefix: that names in files may lack; "" where they may not.
    """

    shapes: Mapping[str, tuple[int, ...]]
    tied: Mapping[str, str]
    prefix: str = ""


def expected_tensors(model_dir: Path) -> Expected | None:
    """Built without memory for the weights (torch's device `meta`), in about a second.

    Returns:
        None where config.json doesn't tell: transformers doesn't know the architecture, renames its
        tensors while it loads them, needs something for it that isn't installed, or they are
        quantised. The log says so.

    Raises:
        EngineError: config.json describes no model.
    """
    try:
        found, why = _expected(model_dir)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        found, why = None, str(error).partition("\n")[0]
    except Exception as error:
        raise EngineError(
            f"it describes no model: {error}",
            where=str(model_dir / "config.json"),
            fix="use the config.json that belongs to the weights",
        ) from error
    if found is None:
        logger.warning("%s: which tensors its weights must have isn't known: %s", model_dir, why)
    return found


def _expected(model_dir: Path) -> tuple[Expected | None, str]:
    """Or why it isn't known."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    # False: nobody is asked on the terminal whether a model's own code may run; it may not.
    config = AutoConfig.from_pretrained(
        str(model_dir), local_files_only=True, trust_remote_code=False
    )
    if getattr(config, "quantization_config", None) is not None:
        return None, "they are quantised"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    if _renames(model):
        return None, f"transformers renames those of a {config.model_type}"
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    # Files of the first GPT-2 models lack it, and vLLM puts it before every name then.
    prefix = f"{model.base_model_prefix}." if config.model_type == "gpt2" else ""
    return Expected(shapes, tied_names(model), prefix), ""


def _renames(model: Any) -> bool:
    """Whether names in files are others than the model's; by its type, its class or its parts."""
    from transformers.conversion_mapping import get_model_conversion_mapping

    return bool(get_model_conversion_mapping(model, add_legacy=False))
