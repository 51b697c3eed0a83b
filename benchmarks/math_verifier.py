"""How right, how fast and how hard to fool the math verifier is, on public data.

Run it with `python benchmarks/math_verifier.py [--json] [--quick]`: accuracy on the labelled cases,
agreement with published verdicts (every disagreement is listed in `math_disagreements.json`), CPU
time against math-verify, throughput through hosts, and the ladder of hostile answers. It exits 1
where a requirement is missed; `--quick` takes a slice, and leaves the times out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["SYMPY_GROUND_TYPES"] = "python"  # as in hosts; before anything loads sympy

from math_verification import material
from math_verification.judging import Part, absent, climb, judge_cases, judge_pairs
from math_verification.material import Absent, Pair
from math_verification.speed import compare, throughput

from prime_core.config.sections import HostingSection, PluginChoice
from prime_core.hosting.verifier_pool import VerifierPool

QUICK_STEP = 37  # of the pairs of different golds
QUICK_SLICE = 5  # of the published solutions
SPEED_STEP = 4  # math-verify needs milliseconds a row


def sources(quick: bool) -> dict[str, Callable[[], list[Pair]]]:
    """The parts that hold verdicts against published ones."""
    step = QUICK_SLICE if quick else 1
    return {
        "gsm8k solutions": lambda: material.gsm8k_solutions()[::step],
        "gsm8k golds": lambda: material.gsm8k_golds()[::step],
        "qwen completions": material.qwen_completions,
        "math500 twins": material.math500_twins,
        "math500 others": lambda: material.math500_others(QUICK_STEP if quick else 1),
    }


async def accuracy(cache: Path, quick: bool) -> list[Part]:
    """Everything that is judged in hosts of the verifier alone."""
    hosting = HostingSection(batch=256, time_limit_s=10.0)
    async with await VerifierPool.open(PluginChoice(use="math"), hosting, cache_dir=cache) as pool:
        parts = [await judge_cases(pool, peer=not quick)]
        for name, read in sources(quick).items():
            try:
                parts.append(await judge_pairs(pool, name, read(), whole=not quick))
            except Absent as error:
                parts.append(absent(name, error))
        return [*parts, await climb(pool)]


def times(cache: Path) -> list[Part]:
    """CPU time against math-verify, and throughput."""
    try:
        solutions, said = material.gsm8k_solutions(), material.qwen_completions()
    except Absent as error:
        return [absent("speed", error), absent("throughput", error)]
    return [
        compare("qwen completions", said, cache),
        compare("gsm8k solutions", solutions[::SPEED_STEP], cache),
        asyncio.run(throughput(solutions, cache, rounds=5)),
    ]


def report(parts: list[Part]) -> str:
    """The parts as text."""
    lines = []
    for part in parts:
        lines.append(f"{part.name}{': skipped, ' + part.skipped if part.skipped else ''}")
        for name, value in part.figures.items():
            if name == "kinds":
                continue
            shown = f"{value:.4g}" if isinstance(value, float) else value
            lines.append(f"  {name}: {shown}")
        lines += [f"  FAILED: {failure}" for failure in part.failures]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        cache = Path(folder)
        parts = asyncio.run(accuracy(cache, arguments.quick))
        if not arguments.quick:
            parts += times(cache)
    if arguments.json:
        print(json.dumps([vars(part) for part in parts], indent=2))
    else:
        print(report(parts))
    return 1 if any(part.failures for part in parts) else 0


if __name__ == "__main__":
    sys.exit(main())
