"""vLLM without anything of ours; run by `speed` under the interpreter that has it.

Takes one JSON object as its argument and prints a JSON list: (batch, tokens, CPU seconds, seconds)
of each size.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any


def main(asked: dict[str, Any]) -> None:
    """Generate with each batch size, after a warm-up."""
    from vllm import LLM, SamplingParams

    model = LLM(
        asked["model"],
        dtype="bfloat16",
        max_model_len=1024,
        max_num_seqs=max(int(size) for size in asked["prompts"]),
        enforce_eager=True,
        distributed_executor_backend="uni",
        skip_tokenizer_init=True,
        kv_cache_memory_bytes=1 << 30,
        async_scheduling=False,
    )
    length = asked["length"]
    params = SamplingParams(temperature=1.0, max_tokens=length, ignore_eos=True, detokenize=False)
    found = []
    for size, tokens in asked["prompts"].items():
        inputs = [{"prompt_token_ids": each} for each in tokens]
        model.generate(inputs, params, use_tqdm=False)
        cpu, wall = [], []
        for _ in range(asked["repeats"]):
            began, started = time.process_time(), time.perf_counter()
            model.generate(inputs, params, use_tqdm=False)
            cpu.append(time.process_time() - began)
            wall.append(time.perf_counter() - started)
        made = int(size) * length
        found.append([int(size), made, statistics.median(cpu), statistics.median(wall)])
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
