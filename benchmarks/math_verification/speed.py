"""CPU time against math-verify on the same rows in the same run, and throughput through hosts.

Both graders are called in one process, warm, in turns of some rows, so that a busy machine slows
both; only rows on which they agree count.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from math_verification.judging import Part
from math_verification.material import GSM8K, MODELS, Pair
from prime_core.api import Completion, Task
from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting.keeper import descendants
from prime_core.hosting.pool import HostPool
from prime_core.hub import Hub, RunContext

MIN_RATIO = 5.0
BLOCK = 50  # rows of one grader before the other has its turn with the same


def _timed(call: Callable[[Task, Completion], Any], pair: Pair) -> tuple[Any, float]:
    task, said = Task(pair.id, (), pair.gold), Completion(pair.completion)
    before = time.process_time()
    value = call(task, said)
    return value, time.process_time() - before


def compare(name: str, pairs: Sequence[Pair], cache: Path) -> Part:
    """CPU seconds of both graders on the rows where they agree."""
    part = Part(f"speed on {name}")
    try:
        other = version("math-verify")
    except PackageNotFoundError:
        part.skipped = (
            "math-verify isn't installed: pip install 'prime-verifier-math[second-opinion]'"
        )
        return part
    verifier: Any = Hub.discover().make(
        "verifier", PluginChoice(use="math"), RunContext(None, cache)
    )
    ours: list[float] = []
    theirs: list[float] = []
    for first in (0, *range(0, len(pairs), BLOCK)):  # the first block twice: once to warm up
        block = pairs[first : first + BLOCK]
        mine = [_timed(verifier.verify, pair) for pair in block]
        other_mine = [_timed(verifier.second_opinion, pair) for pair in block]
        agreed = [
            (seconds, other_seconds)
            for (score, seconds), (opinion, other_seconds) in zip(mine, other_mine, strict=True)
            if score.value == opinion
        ]
        if first == 0:
            ours, theirs = [], []
        ours += [seconds for seconds, _ in agreed]
        theirs += [seconds for _, seconds in agreed]
    part.figures = {
        "math_verify": other,
        "rows": len(pairs),
        "agreed": len(ours),
        "median_ms": 1e3 * statistics.median(ours),
        "median_ms_math_verify": 1e3 * statistics.median(theirs),
        "worst_ms": 1e3 * max(ours),
        "worst_ms_math_verify": 1e3 * max(theirs),
        "median_ratio": statistics.median(theirs) / statistics.median(ours),
        "worst_ratio": max(theirs) / max(ours),
    }
    for name in ("median_ratio", "worst_ratio"):
        part.require(part.figures[name] >= MIN_RATIO, f"{name} is below {MIN_RATIO:g}")
    return part


def _cpu_s() -> float:
    """CPU seconds of this process and its living descendants."""
    own = os.times()
    total = own.user + own.system
    for process in descendants(os.getpid()):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime
    return total


async def throughput(pairs: Sequence[Pair], cache: Path, rounds: int) -> Part:
    """Scores per second of one core, of the whole way through a pool of environment hosts.

    The pairs are the published GSM8K solutions; the environment holds their questions.
    """
    part = Part("throughput")
    choice = EnvironmentChoice.model_validate(
        {
            "use": "math",
            "with": {
                "source": "custom",
                "duplicates": "report",
                "dataset": {
                    "url": str(GSM8K / "example_model_solutions.jsonl"),
                    "columns": {"prompt": "question", "gold_standard_solution": {
                        "column": "ground_truth", "after": "A:"}},
                },
            },
        }
    )  # fmt: skip
    items = [
        (number // len(MODELS), Completion(pair.completion)) for number, pair in enumerate(pairs)
    ]
    async with await HostPool.open(
        choice, None, HostingSection(), cache_dir=cache, run_dir=None
    ) as pool:
        await pool.score(items[:64])
        wall, cpu = time.perf_counter(), _cpu_s()
        for _ in range(rounds):
            scores = await pool.score(items)
        wall, cpu = time.perf_counter() - wall, _cpu_s() - cpu
    right = sum(s.value == float(p.published) for s, p in zip(scores, pairs, strict=True))
    count = rounds * len(items)
    part.figures = {
        "scores": count,
        "per_cpu_second": count / cpu,
        "per_second_one_host": count / wall,
        "as_published": right / len(items),
    }
    return part
