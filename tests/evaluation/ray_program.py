"""Starts a Ray cluster of two workers, does work on it, and kills one in the middle; a program.

Called by test_evaluation_ray.py with a file of completions and an output directory (and, to sample
too, an endpoint's URL), in a process of its own, with every warning an error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import ray
from click.testing import CliRunner

from prime_core.cli.evaluation import evaluate
from prime_core.cli.score import score
from prime_core.evaluation import measuring, placing, scoring
from prime_core.evaluation.ray_crew import Hand, RayCrew

ENV = ["arithmetic", "--with", "digits=1", "--with", "kind=addition"]
ON_RAY = ["--on", "ray", "--workers", "2"]


class Deadly(RayCrew):
    """Begins when both workers are ready, and kills a busy one after the first results."""

    killed: int = 0

    def _hand_out(self, unit: Any, units: Any, depth: int) -> Any:
        ready = [hand for hand in self._hands if hand.pid]
        if not Deadly.killed and len(ready) < 2:
            return unit
        return super()._hand_out(unit, units, depth)

    def _look(self, ray: Any, deliver: Any) -> None:
        super()._look(ray, deliver)
        busy: list[Hand] = [hand for hand in self._hands if hand.doing]
        if busy and not Deadly.killed:
            Deadly.killed = busy[0].pid
            os.kill(busy[0].pid, signal.SIGKILL)


def invoke(command: Any, *arguments: str) -> None:
    result = CliRunner().invoke(command, [*ENV, *arguments])
    if result.exception is not None:
        raise result.exception


def main(completions: str, out: Path, endpoint: str = "") -> None:
    ray.init(
        address="local",  # a cluster of its own, whatever else runs here
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80 << 20,
        log_to_driver=False,
        logging_level="warning",
    )
    crews: list[RayCrew] = []

    def make_crew(on: str, workers: int, *rest: Any) -> Any:
        made = placing.make_crew(on, workers, *rest)
        if isinstance(made, RayCrew):
            made = Deadly(on, workers)
            crews.append(made)
        return made

    scoring.make_crew = make_crew
    measuring.make_crew = make_crew
    scoring.DEPTH = 1  # so that there is work left when a worker dies
    invoke(score, "--completions", completions, "--out", str(out / "score"), *ON_RAY)
    if endpoint:
        call = ["--endpoint", endpoint, "--model", "toy", "--tasks", "6", "--concurrency", "4"]
        invoke(evaluate, *call, "--out", str(out / "eval"), *ON_RAY)
    print(json.dumps({"lost": [crew.lost for crew in crews]}))
    ray.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
