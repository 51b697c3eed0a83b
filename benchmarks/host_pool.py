"""The cost of a score: through the pool, single and batched, by a direct call, and fresh processes.

Run it with `python benchmarks/host_pool.py [--json]`. The verifier is that of the arithmetic
environment, which costs next to nothing, so that what is measured is the way to it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from prime_core.api import Completion, Verifier
from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting.keeper import descendants
from prime_core.hosting.pool import HostPool
from prime_core.hub import Hub, RunContext

CHOICE = EnvironmentChoice(use="arithmetic")
FRESH = """
import sys
from pathlib import Path
from prime_core.api import Completion
from prime_core.config.sections import PluginChoice
from prime_core.hub import Hub, RunContext
environment = Hub.discover().make(
    "environment", PluginChoice(use="arithmetic"), RunContext(None, Path(sys.argv[1]))
)
score = environment.verifier.verify(environment.tasks()[0], Completion(sys.argv[2]))
assert score.status == "scored"
"""


@dataclass(frozen=True)
class Cost:
    """Microseconds of one score: wall time, and CPU time of all processes."""

    way: str
    scores: int
    wall_us: float
    cpu_us: float


def cpu_s() -> float:
    """CPU seconds of this process, its living descendants, and the children it has waited for."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    for process in descendants(os.getpid()):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime
    return total


def measure(way: str, scores: int, work: Callable[[], None]) -> Cost:
    """Time `work`, which makes this many scores."""
    wall, cpu = time.perf_counter(), cpu_s()
    work()
    return Cost(
        way,
        scores,
        1e6 * (time.perf_counter() - wall) / scores,
        1e6 * (cpu_s() - cpu) / scores,
    )


def direct(cache: Path, scores: int) -> Cost:
    """The verifier called in this process."""
    environment = Hub.discover().make("environment", CHOICE, RunContext(None, cache))
    verifier, tasks = environment.verifier, environment.tasks()
    assert isinstance(verifier, Verifier)

    def work() -> None:
        for index in range(scores):
            verifier.verify(tasks[index % len(tasks)], Completion("17"))

    return measure("direct call", scores, work)


def fresh(cache: Path, scores: int) -> Cost:
    """A new Python for every score."""

    def work() -> None:
        for _ in range(scores):
            subprocess.run([sys.executable, "-c", FRESH, str(cache), "17"], check=True)

    return measure("fresh process", scores, work)


async def pooled(cache: Path, single: int, batched: int, hosts: int) -> list[Cost]:
    """A warm pool: one score at a time, then all at once."""
    hosting = HostingSection(hosts=hosts)
    async with await HostPool.open(
        CHOICE, PluginChoice(use="task"), hosting, cache_dir=cache, run_dir=None
    ) as pool:
        count = pool.description.task_count
        items = [(index % count, Completion("17")) for index in range(batched)]
        while pool.metrics()["starts"] < hosts:
            await pool.score(items[:hosts])
            await asyncio.sleep(0.05)

        wall, cpu = time.perf_counter(), cpu_s()
        for item in items[:single]:
            await pool.score([item])
        middle_wall, middle_cpu = time.perf_counter(), cpu_s()
        await pool.score(items)
        end_wall, end_cpu = time.perf_counter(), cpu_s()
    suffix = f"{hosts} host{'s' if hosts > 1 else ''}"
    return [
        Cost(
            f"pool, single, {suffix}",
            single,
            1e6 * (middle_wall - wall) / single,
            1e6 * (middle_cpu - cpu) / single,
        ),
        Cost(
            f"pool, batches of {hosting.batch}, {suffix}",
            batched,
            1e6 * (end_wall - middle_wall) / batched,
            1e6 * (end_cpu - middle_cpu) / batched,
        ),
    ]


def report(costs: list[Cost], as_json: bool) -> None:
    """Print the table, or the same as JSON."""
    base, slowest = costs[0], costs[-1]
    rows = [
        {
            "way": cost.way,
            "scores": cost.scores,
            "wall_us": round(cost.wall_us, 2),
            "cpu_us": round(cost.cpu_us, 2),
            "wall_ratio_to_direct": round(cost.wall_us / base.wall_us, 2),
            "cpu_ratio_to_direct": round(cost.cpu_us / max(base.cpu_us, 1e-3), 2),
            "cheaper_than_fresh_wall": round(slowest.wall_us / cost.wall_us, 1),
            "cheaper_than_fresh_cpu": round(slowest.cpu_us / max(cost.cpu_us, 1e-3), 1),
        }
        for cost in costs
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'way':32} {'wall us':>10} {'cpu us':>10} {'x direct':>9} {'fresh is x':>11}")
    for row in rows:
        print(
            f"{row['way']:32} {row['wall_us']:10} {row['cpu_us']:10} "
            f"{row['wall_ratio_to_direct']:9} {row['cheaper_than_fresh_wall']:11}"
        )


def main() -> None:
    """Measure every way on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batched", type=int, default=20_000, help="scores in the batched run")
    parser.add_argument("--single", type=int, default=2_000, help="scores one at a time")
    parser.add_argument("--fresh", type=int, default=10, help="scores in fresh processes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        cache = Path(directory)
        costs = [direct(cache, 10 * options.batched)]
        for hosts in (1, 2):
            costs += asyncio.run(pooled(cache, options.single, options.batched, hosts))
        costs.append(fresh(cache, options.fresh))
    report(costs, options.json)


if __name__ == "__main__":
    main()
