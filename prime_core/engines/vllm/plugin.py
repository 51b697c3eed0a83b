"""Registers the engine `vllm`; imports neither torch nor vLLM, which live in the child process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from prime_core.api import Context, InferenceEngineSpec, Params, hookimpl

if TYPE_CHECKING:
    from prime_core.engines.vllm.engine import VllmEngine


class VllmParams(Params):
    """Parameters of the engine `vllm`."""

    batch_size: int = Field(
        32, ge=1, description="completions generated together (vLLM's max_num_seqs)"
    )
    max_model_len: int | None = Field(
        None, ge=2, description="longest sequence, prompt included; default is the model's own"
    )
    hidden_states: bool = Field(
        False, description="return the final hidden state that chose each token"
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="dtype of the weights; default is [model] dtype"
    )
    threads: int = Field(1, ge=1, description="torch threads; default is [engine] threads")
    tensor_parallel: int = Field(1, ge=1, description="GPUs that share the model's tensors")
    pipeline_parallel: int = Field(1, ge=1, description="stages that share the model's layers")
    compiled: bool = Field(
        False, description="let vLLM compile the model and capture CUDA graphs; slower to start"
    )
    prefix_caching: bool = Field(True, description="share the prefill of equal prompt beginnings")
    kv_cache_gib: float | None = Field(
        None, gt=0, description="size of the KV cache; default is 1 GiB on CPUs, the rest on GPUs"
    )
    gpu_memory: float = Field(
        0.9,
        gt=0,
        le=1,
        description="share of a GPU's memory that vLLM may take; so much must be free",
    )
    max_batched_tokens: int | None = Field(
        None, ge=1, description="tokens of one step, prefills in chunks; default is vLLM's own"
    )
    python: Path | None = Field(
        None, description="interpreter that has vLLM and prime-core; default is this one"
    )
    start_timeout_s: float = Field(
        600.0, gt=0, description="longest time to start and to load weights"
    )
    hang_timeout_s: float = Field(
        300.0, gt=0, description="longest time without a step before vLLM is started anew"
    )

    @model_validator(mode="after")
    def _check_batch(self) -> VllmParams:
        if self.max_batched_tokens is not None and self.max_batched_tokens < self.batch_size:
            raise ValueError(
                f"max_batched_tokens {self.max_batched_tokens} is less than one token for each of "
                f"batch_size {self.batch_size} completions: raise it, or lower batch_size"
            )
        return self


def make(params: VllmParams, context: Context) -> VllmEngine:
    """Factory of the spec."""
    from prime_core.engines.vllm.engine import VllmEngine

    return VllmEngine(params, log_dir=context.run_dir / "logs" if context.run_dir else None)


@hookimpl
def prime_inference_engines() -> list[InferenceEngineSpec]:
    """The engine of this module."""
    return [
        InferenceEngineSpec(
            name="vllm",
            params=VllmParams,
            factory=make,
            summary="vLLM in a child process: continuous batching, seeded races, live weights",
        )
    ]
