"""Registers the engine `transformers`; imports torch only when the engine is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from prime_core.api import Context, InferenceEngineSpec, Params, hookimpl

if TYPE_CHECKING:
    from prime_core.engines.transformers.engine import TransformersEngine


class TransformersParams(Params):
    """Parameters of the engine `transformers`."""

    batch_size: int = Field(32, ge=1, description="completions generated together")
    attention: Literal["sdpa", "eager"] = Field("sdpa", description="attention implementation")
    hidden_states: bool = Field(
        False, description="return the final hidden state that chose each token"
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="dtype of the weights; default is [model] dtype"
    )
    threads: int = Field(1, ge=1, description="torch threads; default is [engine] threads")


def make(params: TransformersParams, context: Context) -> TransformersEngine:
    """Factory of the spec."""
    from prime_core.engines.transformers.engine import TransformersEngine

    return TransformersEngine(params)


@hookimpl
def prime_inference_engines() -> list[InferenceEngineSpec]:
    """The engine of this module."""
    return [
        InferenceEngineSpec(
            name="transformers",
            params=TransformersParams,
            factory=make,
            summary="Hugging Face models in this process: batched, seeded, bit for bit repeatable",
        )
    ]
