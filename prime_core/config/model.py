"""The sections of the model: where it lies, and its shape where it lies elsewhere.

`sections` offers both. The shape's keys are those of a Hugging Face config.json.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prime_core.config.section import Section


class ModelShapeSection(Section):
    """Dimensions of the model, for a dry run on a machine that doesn't have it."""

    hidden_size: int = Field(gt=0, description="width of a hidden state")
    intermediate_size: int = Field(gt=0, description="width inside a block's MLP")
    num_hidden_layers: int = Field(gt=0, description="blocks")
    num_attention_heads: int = Field(gt=0, description="query heads of a block")
    num_key_value_heads: int = Field(gt=0, description="key and value heads of a block")
    vocab_size: int = Field(gt=0, description="rows of the embedding")
    max_position_embeddings: int = Field(gt=0, description="longest sequence")
    tie_word_embeddings: bool = Field(
        default=False, description="whether the output layer is the embedding"
    )


class ModelSection(Section):
    """The model that version 0 is made from."""

    path: str = Field(
        min_length=1, description="directory in Hugging Face layout, or package:NAME for GGUF"
    )
    gguf: str | None = Field(default=None, description="GGUF file inside path, converted once")
    dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="dtype of the served weights and of generation"
    )
    chat_template: str | None = Field(
        default=None, description="overrides the tokenizer's chat template"
    )
    shape: ModelShapeSection | None = Field(
        default=None, description="its dimensions, for a dry run where it isn't there"
    )
