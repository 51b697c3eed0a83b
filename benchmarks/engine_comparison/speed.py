"""Tokens a second and CPU a token of five ways to generate, for batches of 1, 8 and 32."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from engine_comparison import plain_vllm
from engine_comparison.material import (
    Rows,
    collect,
    make_requests,
    opened,
    prompts,
    smollm2,
    vllm_python,
)
from prime_core.api import GenerationRequest
from prime_core.engines.model_files import build_model, weight_files
from prime_core.engines.strict_load import load_weights
from prime_core.toploc import ProofBuilder

ENGINES = ("plain", "vllm", "transformers", "generate")


def speed(
    home: Path, *, quick: bool, tokens: int | None, repeats: int, engines: Sequence[str] = ENGINES
) -> Rows:
    """The engines asked for, for each batch size; all generate completions of the same length."""
    model = smollm2(home, "bfloat16")
    sizes, length = ((1, 8), 12) if quick else ((1, 8, 32), tokens or 48)
    repeats = 1 if quick else repeats
    measure = {
        "plain": _plain,
        "vllm": _ours,
        "transformers": _transformers,
        "generate": _generate,
    }
    rows: Rows = []
    for name in engines:
        made = measure[name](model, sizes, length, repeats)
        print(*made, sep="\n", file=sys.stderr, flush=True)
        rows += made
    return sorted(rows, key=lambda each: each["batch"])


def _ours(model: Path, sizes: Sequence[int], length: int, repeats: int) -> Rows:
    rows: Rows = []
    with opened("vllm", model, "bfloat16", max(sizes)) as engine:
        for size in sizes:
            raced = make_requests(prompts(model, size), length, 1.0)
            greedy = [replace(each, temperature=0.0) for each in raced]
            for name, work in (
                ("greedy", partial(collect, engine, greedy)),
                ("seeded", partial(collect, engine, raced)),
                ("seeded, committed", partial(_committed, engine, raced)),
            ):
                tokens = size * length
                rows.append(
                    measured(f"engine vllm, {name}", size, tokens, work, engine.pid, repeats)
                )
    return rows


def _committed(engine: Any, requests: Sequence[GenerationRequest]) -> object:
    builders = [ProofBuilder() for _ in requests]
    asked = zip(requests, builders, strict=True)
    collect(engine, [replace(each, commitment=builder) for each, builder in asked])
    return [builder.finish() for builder in builders]


def _transformers(model: Path, sizes: Sequence[int], length: int, repeats: int) -> Rows:
    with opened("transformers", model, "bfloat16", max(sizes)) as engine:
        return [
            measured(
                "engine transformers",
                size,
                size * length,
                partial(collect, engine, make_requests(prompts(model, size), length, 1.0)),
                None,
                repeats,
            )
            for size in sizes
        ]


def _plain(model: Path, sizes: Sequence[int], length: int, repeats: int) -> Rows:
    asked = {
        "model": str(model),
        "length": length,
        "repeats": repeats,
        "prompts": {size: prompts(model, size) for size in sizes},
    }
    environment = {
        **os.environ,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
    answer = subprocess.run(
        [str(vllm_python() or sys.executable), plain_vllm.__file__, json.dumps(asked)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = json.loads(answer.stdout.strip().splitlines()[-1])
    return [row("plain vLLM", *each) for each in found]


def _generate(model: Path, sizes: Sequence[int], length: int, repeats: int) -> Rows:
    """The library's own `generate`, sampling."""
    built = build_model(model, dtype="bfloat16")
    load_weights(built, weight_files(model))
    rows = []
    for size in sizes:
        tokens = prompts(model, size)
        longest = max(len(each) for each in tokens)
        ids = torch.tensor([[0] * (longest - len(each)) + list(each) for each in tokens])
        mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in tokens])
        work = partial(
            built.generate,
            ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            min_new_tokens=length,
            max_new_tokens=length,
            pad_token_id=0,
        )
        rows.append(measured("transformers' generate", size, size * length, work, None, repeats))
    return rows


def measured(
    engine: str, batch: int, tokens: int, work: Callable[[], object], pid: int | None, repeats: int
) -> dict[str, Any]:
    """The median over the repeats, after one that warms up."""
    work()
    cpu, wall = [], []
    for _ in range(repeats):
        began, started = cpu_seconds(pid), time.perf_counter()
        work()
        cpu.append(cpu_seconds(pid) - began)
        wall.append(time.perf_counter() - started)
    return row(engine, batch, tokens, statistics.median(cpu), statistics.median(wall))


def row(engine: str, batch: int, tokens: int, cpu: float, wall: float) -> dict[str, Any]:
    """One line of the table."""
    return {
        "engine": engine,
        "batch": batch,
        "tokens": tokens,
        "tokens_per_cpu_s": round(tokens / cpu, 1),
        "tokens_per_s": round(tokens / wall, 1),
        "cpu_ms_per_token": round(1e3 * cpu / tokens, 2),
    }


def cpu_seconds(pid: int | None = None) -> float:
    """CPU time of this process, and of another one."""
    own = time.process_time()
    if pid is None:
        return own
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return own + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
