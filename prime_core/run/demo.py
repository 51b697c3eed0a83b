"""`prime-core demo`: build a tiny model, warm it up, train it by asynchronous GRPO, show the gain.

Called by the command line alone; it plays the same supervisor, processes and plugins as any run.
The environment is read through its hosts, as everywhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError

if TYPE_CHECKING:
    from prime_core.config.load import LoadedConfig
    from prime_core.config.sections import RunConfig

SYMBOLS = "0123456789+="  # what two-digit additions are written with
WARMUP_TARGET = 0.3  # sampled accuracy from which GRPO has something to reinforce


@dataclass(frozen=True)
class DemoResult:
    """What `--json` prints.

    Attributes:
        accuracy_before, accuracy_after: share of held-out tasks solved by one sampled completion
            each, after the warm-up and after the last step.
        greedy_before, greedy_after: the same without sampling noise.
        steps: rollout steps trained.
        seconds: wall time by phase: warmup, train (with evaluation), total.
        outcomes: how many rollouts had which fate.
        idle_share: by process, the share of the training time that it waited.
    """

    accuracy_before: float
    accuracy_after: float
    greedy_before: float
    greedy_after: float
    held_out_tasks: int
    steps: int
    seconds: dict[str, float]
    outcomes: dict[str, int]
    idle_share: dict[str, float]
    files: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def demo_config(out: Path, seed: int, *, check_files: bool = True) -> LoadedConfig:
    """The demo's run config, its directories below `out`; files may be checked later."""
    from prime_core.run.configuration import load_run_config

    template = Path(str(files("prime_core.run") / "demo.toml"))
    overrides = (
        f"run.dir={json.dumps(str(out / 'run'))}",
        f'run.id="demo-{seed}"',
        f"run.seed={seed}",
        f"model.path={json.dumps(str(out / 'model'))}",
    )
    return load_run_config(template, overrides, check_files=check_files)


async def warmup_pairs(config: RunConfig) -> list[tuple[str, str]]:
    """(prompt, right answer) of every training task, as the environment's hosts give them."""
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import RunContext

    context = RunContext.from_environment()
    pool = await HostPool.open(
        config.environments[0],
        config.reward,
        config.hosting,
        cache_dir=context.cache_dir,
        run_dir=None,
    )
    try:
        indices = range(pool.description.task_count)
        prompts = await pool.render([(index, None) for index in indices])
        answers = [await pool.gold(index) for index in indices]
    finally:
        await pool.close()
    texts = ["".join(message.content for message in messages) for messages in prompts]
    return list(zip(texts, answers, strict=True))


def build_and_warm_up(config: RunConfig, out: Path, say: Any) -> float:
    """Make `<out>/model`; returns the seconds it took.

    Raises:
        RunError: the warm-up failed, with its output.
    """
    started = time.monotonic()
    say("building a tiny model (Qwen2 architecture, 1.05 M parameters)")
    pairs = asyncio.run(warmup_pairs(config))
    job = {
        "model_dir": str(out / "model"),
        "symbols": SYMBOLS,
        "pairs": pairs,
        "seed": config.run.seed,
        "threads": config.trainer.threads,
        "target": WARMUP_TARGET,
        "supervisor": os.getpid(),
        "result": str(out / "warmup.json"),
    }
    (out / "warmup-job.json").write_text(json.dumps(job))
    say(f"warming it up on {len(pairs)} training tasks until {WARMUP_TARGET} sampled accuracy")
    environment = {**os.environ, "OMP_NUM_THREADS": str(config.trainer.threads)}
    with (out / "warmup.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "prime_core.run.warmup", str(out / "warmup-job.json")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
    if done.returncode != 0:
        tail = (out / "warmup.log").read_text()[-2000:]
        raise RunError(f"the warm-up failed:\n{tail}", where=str(out / "warmup.log"))
    result = json.loads((out / "warmup.json").read_text())
    say(f"warmed up: {result['steps']} supervised steps, sampled accuracy {result['accuracy']:.2f}")
    return time.monotonic() - started


def run_demo(out: Path, *, seed: int, minutes: float | None) -> DemoResult:
    """The whole demo in an empty directory.

    Raises:
        RunError: the directory is used, or a phase failed.
    """
    from prime_core.run.plots import plot_run
    from prime_core.run.preparing import TRAINING, check_installed
    from prime_core.run.progress import Progress
    from prime_core.run.supervisor import supervise

    check_installed("demo", (*TRAINING, "matplotlib"))
    if out.exists() and any(out.iterdir()):
        raise RunError(
            "the directory isn't empty",
            where=str(out),
            fix="choose another with --out, or remove it",
        )
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    # The model that the config names is built here, by what the config says of its environment.
    planned = demo_config(out, seed, check_files=False).config
    warmup_s = build_and_warm_up(planned, out, Progress(planned.trainer.steps).say)
    loaded = demo_config(out, seed)
    deadline = None if minutes is None else started + 60 * minutes
    summary = supervise(loaded, resume=False, deadline=deadline)
    found = summary["evaluations"]
    first, last = found["0"], found[str(summary["steps"])]
    plots = plot_run(
        out / "run",
        out,
        evaluations={int(version): one["sampled"] for version, one in found.items()},
        facts={
            "held-out accuracy": f"{first['sampled']:.3f} before, {last['sampled']:.3f} after "
            f"(sampled, {first['tasks']} tasks)",
            "greedy": f"{first['greedy']:.3f} before, {last['greedy']:.3f} after",
            "rollout steps": str(summary["steps"]),
            "seconds": f"{warmup_s:.0f} warm-up, {summary['seconds']:.0f} training and evaluation",
            "outcomes": ", ".join(f"{k} {n}" for k, n in sorted(summary["outcomes"].items())),
        },
    )
    return DemoResult(
        accuracy_before=first["sampled"],
        accuracy_after=last["sampled"],
        greedy_before=first["greedy"],
        greedy_after=last["greedy"],
        held_out_tasks=first["tasks"],
        steps=summary["steps"],
        seconds={
            "warmup": round(warmup_s, 1),
            "train": summary["seconds"],
            "total": round(time.monotonic() - started, 1),
        },
        outcomes=summary["outcomes"],
        idle_share=summary["idle_share"],
        files={
            "run": str(out / "run"),
            "png": str(plots.png),
            "html": str(plots.html),
            "trace": summary["trace"],
        },
    )
