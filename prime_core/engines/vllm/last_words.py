"""Why vLLM's process ended, from its exit code and the end of its log, and which option helps.

Used by `process`. vLLM advises options of its own, which a run's config doesn't have.
"""

from __future__ import annotations

import re

# The line that ends a traceback, in a worker's log line or not; pydantic says more a line later.
_ERROR = re.compile(
    r"^(?:\[[^\]]*\]:?\s*|\([^)]*\)\s*)*((?:[\w.]*(?:Error|Exception)|\s*Value error,).*)$"
)
_PYDANTIC = re.compile(r"^\s*Value error, (.*?)(?: \[type=.*)?$")
_LONGEST = 400
_READ_LOG = "read the end of that log"
# vLLM 0.32's words, and what to do in ours.
_ADVICE = (
    (
        r"No available memory for the cache blocks|larger than the available KV cache memory",
        "raise the engine's kv_cache_gib (on a GPU without one, gpu_memory), or lower its "
        "max_model_len: one sequence doesn't fit in the cache",
    ),
    (
        r"less than requested memory for kv",
        "lower the engine's kv_cache_gib: the machine hasn't so much memory free",
    ),
    (
        r"greater than the derived max_model_len",
        "lower the engine's max_model_len to what the model was made for",
    ),
    (
        r"less than desired GPU memory utilization",
        "lower the engine's gpu_memory, or end what else holds the GPU's memory",
    ),
    (
        r"[Oo]ut of memory|OutOfMemoryError|MemoryError|[Cc]an't allocate memory|"
        r"Cannot allocate memory|DefaultCPUAllocator",
        "lower the engine's batch_size, kv_cache_gib or gpu_memory: memory ran out",
    ),
)


def explain(code: int | None, log: str) -> tuple[str, str]:
    """What happened, and what to do about it.

    Args:
        code: of the process; below 0 the signal that killed it.
        log: the end of what it printed.
    """
    if code is not None and code < 0:
        # What it printed before has nothing to do with it.
        hint = "; signal 9 is often the kernel out of memory: lower kv_cache_gib or batch_size"
        return f"was killed by signal {-code}", _READ_LOG + (hint if code == -9 else "")
    lines = log.strip().splitlines()
    said = next((found[1] for line in reversed(lines) if (found := _ERROR.match(line))), "")
    if found := _PYDANTIC.match(said):
        said = found[1]
    advice = next((fix for words, fix in _ADVICE if re.search(words, said)), _READ_LOG)
    if said:
        return f"ended: {code}: {said[:_LONGEST].strip()}", advice
    return "\n".join([f"ended: {code}", *lines[-8:]]), advice
