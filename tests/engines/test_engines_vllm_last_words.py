"""An error of vLLM's start names the option of ours that helps; lines are of vLLM 0.32's logs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from prime_core.engines.vllm.last_words import explain
from prime_core.engines.vllm.plugin import VllmParams

WORKER = "[rank0]:     raise ValueError(\n[rank0]: ValueError: "
WARNING = "(MainProcess pid=7) WARNING 11-30 01:10:46 [base.py:413] Using None for EOS token id"
PYDANTIC = (
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
    "  Value error, User-specified max_model_len (5000) is greater than the derived max_model_len "
    "(max_position_embeddings=1024.0). To allow overriding this maximum, set the env var "
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. [type=value_error, input_value=ArgsKwargs(()), "
    "input_type=ArgsKwargs]\n"
    "    For further information visit https://errors.pydantic.dev/2.14/v/value_error\n"
)


@pytest.mark.parametrize(
    ("log", "said", "option"),
    [
        (
            f"{WORKER}No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.\n",
            "No available memory for the cache blocks",
            "raise the engine's kv_cache_gib",
        ),
        (
            f"{WORKER}Available memory on node 0 (14.9/23.54 GiB) on kv cache allocation is less "
            "than requested memory for kv (4000.0 GiB). Decrease --kv-cache-memory-bytes.\n",
            "less than requested memory",
            "lower the engine's kv_cache_gib",
        ),
        (PYDANTIC, "1: User-specified max_model_len (5000)", "lower the engine's max_model_len"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
            "CUDA out of memory",
            "lower the engine's batch_size",
        ),
        (f"{WORKER}heads of 16 aren't known\n{WARNING}\n", "heads of 16", "read the end"),
    ],
)
def test_the_option_that_helps_is_ours(log: str, said: str, option: str) -> None:
    what, fix = explain(1, f"{WARNING}\nTraceback (most recent call last):\n{log}")
    assert said in what
    assert "Traceback" not in what
    assert "type=value_error" not in what
    assert option in fix
    assert "signal" not in fix


def test_a_kill_has_nothing_to_do_with_what_was_printed() -> None:
    what, fix = explain(-9, f"ValueError: old\n{WARNING}")
    assert what == "was killed by signal 9"
    assert "kernel out of memory" in fix
    assert "memory" not in explain(-11, WARNING)[1]


def test_an_end_without_an_error_shows_the_last_lines() -> None:
    assert explain(3, "out of luck\n") == ("ended: 3\nout of luck", "read the end of that log")


def test_a_step_has_a_token_for_every_completion() -> None:
    with pytest.raises(ValidationError, match="max_batched_tokens 8 is less than one token"):
        VllmParams(max_batched_tokens=8, batch_size=32)
    VllmParams(max_batched_tokens=32, batch_size=32)
