"""What the hub costs a person: listing a hundred distributions, and checking the math environment.

Run it with `python benchmarks/hub.py [--json]`. CPU time is that of all processes: the benchmark
reaps whatever its children leave behind. Listing is compared with loading every entry point.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = 100
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

# What a plugin's module looks like: parameters, a factory, and a hook.
MODULE = '''
from typing import Any
from pydantic import Field
from prime_core.api import EnvironmentSpec, Params, hookimpl

class Some{n}(Params):
    """Parameters."""
    size: int = Field(10, ge=1, description="tasks")

def make(params: Some{n}, context: Any) -> Any:
    return params

@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    return [EnvironmentSpec(name="some_{n}", params=Some{n}, factory=make, summary="some tasks")]
'''
NAIVE = """
from importlib.metadata import entry_points
names = [each.load().prime_environments()[0].name
         for each in entry_points(group="prime_core") if each.name.startswith("environment.some_")]
assert len(names) == {count}, names
"""


@dataclass(frozen=True)
class Cost:
    """One command: CPU seconds of all its processes, and wall seconds."""

    what: str
    cpu_s: float
    wall_s: float


def distributions(folder: Path, count: int) -> None:
    """Installed distributions of one environment each, as pip leaves them."""
    for n in range(count):
        name = f"prime_env_some_{n}"
        (folder / f"{name}.py").write_text(MODULE.format(n=n), encoding="utf-8")
        info = folder / f"{name}-1.{n}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {name.replace('_', '-')}\nVersion: 1.{n}\n"
            "Summary: some tasks\nRequires-Python: >=3.11\nRequires-Dist: prime-core<1,>=0.1\n",
            encoding="utf-8",
        )
        (info / "entry_points.txt").write_text(
            f"[prime_core]\nenvironment.some_{n} = {name}\n", encoding="utf-8"
        )
        (info / "RECORD").write_text(f"{name}.py,,\n", encoding="utf-8")


def measure(what: str, command: list[str], **variables: str) -> tuple[Cost, str]:
    """Run a command to its end, and that of everything it left; returns what it printed too."""
    before, began = _children_cpu(), time.perf_counter()
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, cwd=ROOT
    )
    wall = time.perf_counter() - began
    assert done.returncode == 0, done.stdout + done.stderr
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    return Cost(what, _children_cpu() - before, wall), done.stdout


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def listing(count: int = DISTRIBUTIONS) -> list[Cost]:
    """`prime-core plugins list` beside loading every entry point; each the median of five."""
    ours = [sys.executable, "-m", "prime_core", "plugins", "list"]
    naive = [sys.executable, "-c", NAIVE.format(count=count)]
    found = []
    with TemporaryDirectory() as folder:
        distributions(Path(folder), count)
        for what, command in (("plugins list", ours), ("load every entry point", naive)):
            runs = [
                measure(f"{what}, {count} more distributions", command, PYTHONPATH=folder)
                for _ in range(5)
            ]
            if command is ours:
                assert all(f"prime-env-some-{n} " in runs[0][1] for n in range(count))
            found.append(sorted((cost for cost, _ in runs), key=lambda cost: cost.cpu_s)[2])
    return found


def checking(target: str, levels: tuple[str, ...] = ("bronze", "silver")) -> list[Cost]:
    """`prime-core check` of a member, nothing cached."""
    check = [sys.executable, "-m", "prime_core", "check", target, "--no-cache", "--level"]
    return [measure(f"check {target} --level {level}", [*check, level])[0] for level in levels]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    costs = [*listing(), *checking("environments/math")]
    if arguments.json:
        print(json.dumps([vars(cost) for cost in costs], indent=2))
        return
    for cost in costs:
        print(f"{cost.what:<60} {cost.cpu_s:7.2f} s CPU {cost.wall_s:7.2f} s wall")


if __name__ == "__main__":
    main()
