"""Which tensors a model's weights must have, from its config.json alone; nothing is loaded.

Called by engines that hand files to somebody else, who may take them as they are: vLLM leaves a
part of a fused layer as it was made where the files lack it, and unties what the config ties.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_core.engines.strict_load import tied_names

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the weights must hold.

    Attributes:
        shapes: of every tensor, by name.
        tied: tensors that may be left out, and the one that each equals.
    """

    shapes: Mapping[str, tuple[int, ...]]
    tied: Mapping[str, str]


def expected_tensors(model_dir: Path) -> Expected | None:
    """Built without memory for the weights (torch's device `meta`), in about a second.

    Returns:
        None where config.json doesn't tell: transformers doesn't know the architecture, renames its
        tensors while it loads them, or they are quantised. The log says so.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    why = ""
    try:
        config = AutoConfig.from_pretrained(str(model_dir), local_files_only=True)
        if getattr(config, "quantization_config", None) is not None:
            why = "they are quantised"
        elif get_checkpoint_conversion_mapping(config.model_type):
            why = f"transformers renames those of a {config.model_type}"
        else:
            with torch.device("meta"):
                model = AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error).partition("\n")[0]
    if why:
        logger.warning("%s: which tensors its weights must have isn't known: %s", model_dir, why)
        return None
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    return Expected(shapes, tied_names(model))
