"""The engine `vllm` against plain vLLM and transformers: the same answers, and at what cost.

    python benchmarks/engines.py [--quick] [--json] [--only speed,race,equality,feeding]
        [--tokens N] [--repeats N] [--engines plain,vllm,transformers,generate]
        [--completions N] [--models tiny,smollm2]

`PRIME_VLLM_PYTHON` names an interpreter with vLLM and prime-core (`make vllm`; default
`.venv-vllm`). One torch thread a process. `speed` generates completions of equal length with
SmolLM2-135M-Instruct in bfloat16; CPU seconds are those of all processes. `race` times the seeded
races alone, on logits of that model's size. `equality` generates with one engine, recomputes with
the other, and judges the commitments under the right model and under wrong and older ones.
`feeding` compares a worker's submissions one at a time and beside each other.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import tempfile
from pathlib import Path

import torch
from engine_comparison.equality import equality
from engine_comparison.feeding import feeding
from engine_comparison.material import Rows, table, vllm_python
from engine_comparison.racing import race_alone
from engine_comparison.speed import ENGINES, speed


def run(part: str, home: Path, options: argparse.Namespace) -> Rows:
    """One part's rows."""
    if part == "speed":
        return speed(
            home,
            quick=options.quick,
            tokens=options.tokens,
            repeats=options.repeats,
            engines=options.engines.split(","),
        )
    if part == "race":
        return race_alone(quick=options.quick)
    if part == "feeding":
        return feeding(home, quick=options.quick)
    return equality(
        home,
        quick=options.quick,
        completions=options.completions,
        models=options.models.split(","),
    )


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="speed,race,equality,feeding")
    parser.add_argument("--tokens", type=int, help="of one completion, in `speed`")
    parser.add_argument("--repeats", type=int, default=3, help="in `speed`, after a warm-up")
    parser.add_argument("--engines", default=",".join(ENGINES), help="in `speed`")
    parser.add_argument("--completions", type=int, default=48, help="of SmolLM2, in `equality`")
    parser.add_argument("--models", default="tiny,smollm2", help="in `equality`")
    options = parser.parse_args()
    if vllm_python() is None and importlib.util.find_spec("vllm") is None:
        print("left out: vLLM isn't installed; `make vllm` installs it")
        return
    torch.set_num_threads(1)
    for part in options.only.split(","):
        with tempfile.TemporaryDirectory() as home:
            rows = run(part, Path(home), options)
        load = " ".join(f"{value:.0f}" for value in os.getloadavg())
        if options.json:
            print(json.dumps({"part": part, "load": load, "rows": rows}), flush=True)
        else:
            print(f"\n{part} (load {load})\n\n{table(rows)}", flush=True)


if __name__ == "__main__":
    main()
