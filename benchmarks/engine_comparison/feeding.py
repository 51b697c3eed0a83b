"""What it brings that a submission begins while the last completions of the one before still run.

One worker on vLLM with a tiny model whose completions end by chance, so that their lengths spread;
the same submissions one at a time, then beside each other, as the worker does by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np

from engine_comparison.material import START_S, Rows, vllm_python
from engine_comparison.speed import cpu_seconds
from prime_core.config.sections import RunConfig
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.rollout.setup import Equipment, equip
from prime_core.rollout.under_way import UnderWay
from prime_core.rollout.worker import Worker
from prime_core.run.preparation import prepare
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.counter import Wait, Work
from prime_core.store.objects import open_store
from prime_core.store.policy import write_policy
from prime_core.store.records import Dispatch
from prime_core.store.submission import read_submission

PLACES, GROUP_SIZE = 16, 4
NODE = "worker-0"


class Handed:
    """A seeker with so many submissions to hand out."""

    waited_s = 0.0

    def __init__(self, first: int, count: int, groups: int) -> None:
        self._next, self._end, self._groups = first, first + count, groups

    def look(self, under_way: Collection[Any] = ()) -> Work | Wait:
        """The next, whatever is under way."""
        if self._next == self._end:
            return Wait("nothing", over=True)
        return Work(0, 0, self._groups)

    async def seek(self) -> Work | None:
        """The next, or None."""
        found = self.look()
        return None if isinstance(found, Wait) else found

    def next_index(self, step: int) -> int:
        """Called once a submission."""
        self._next += 1
        return self._next - 1

    def is_useful(self, dispatch: Dispatch) -> bool:
        """All are."""
        return True


def feeding(home: Path, *, quick: bool) -> Rows:
    """Steps, CPU and time of one set of submissions in both ways."""
    symbols = [chr(code) for code in range(32, 127)] + ["\n"]
    model = build_tiny_model(home / "model", symbols=symbols, hidden=128, heads=4)
    rows: Rows = []
    for way, places in (("one at a time", 0), ("beside each other", PLACES)):
        config = _prepared(home / way.replace(" ", "-"), model, longest=64 if quick else 256)
        rows.append({"submissions": way, **asyncio.run(_work(config, places, 4 if quick else 12))})
    return rows


async def _work(config: RunConfig, places: int, count: int) -> dict[str, Any]:
    groups = config.engine.groups_per_submission
    async with AsyncExitStack() as stack:
        equipment: Equipment = await equip(config, NODE, stack)
        engine: Any = equipment.engine
        worker = Worker(equipment)
        worker._under_way = UnderWay(places)
        equipment.seeker = Handed(0, 1, groups)  # type: ignore[assignment]
        await worker.work()  # loads the weights, and warms up
        before, began, started = engine.figures, cpu_seconds(engine.pid), time.perf_counter()
        equipment.seeker = Handed(1, count, groups)  # type: ignore[assignment]
        await worker.work()
        cpu, wall = cpu_seconds(engine.pid) - began, time.perf_counter() - started
        steps, tokens = (engine.figures[name] - before[name] for name in ("steps", "tokens"))
    store = open_store(config)
    lengths = [
        len(row.completion_tokens)
        for n in range(1, 1 + count)
        for row in read_submission(store.get(layout.submission_path(0, NODE, n))).rows
    ]
    assert sum(lengths) == tokens
    return {
        "rollouts": len(lengths),
        "tokens": int(tokens),
        "lengths (10th, 50th, 90th percentile)": [
            int(each) for each in np.percentile(lengths, (10, 50, 90))
        ],
        "steps of vLLM": int(steps),
        f"tokens a step (of {PLACES})": round(tokens / steps, 2),
        "tokens_per_cpu_s": round(tokens / cpu),
        "tokens_per_s": round(tokens / wall),
    }


def _prepared(run_dir: Path, model: Path, longest: int) -> RunConfig:
    params: dict[str, Any] = {"batch_size": PLACES, "start_timeout_s": START_S}
    if (python := vllm_python()) is not None:
        params["python"] = str(python)
    config = RunConfig.model_validate(
        {
            "run": {"dir": str(run_dir), "id": "feeding"},
            "model": {"path": str(model)},
            "engine": {
                "use": "vllm",
                "max_tokens": longest,
                "groups_per_submission": PLACES // GROUP_SIZE,
                "with": params,
            },
            "trainer": {"steps": 1, "groups_per_step": 1000, "group_size": GROUP_SIZE},
            "environments": [{"use": "arithmetic", "with": {"kind": "addition", "digits": 2}}],
        }
    )
    run_dir.mkdir()
    (run_dir / layout.RUN).write_text("# made by the benchmark\n")
    keys = run_dir / layout.KEYS
    keys.mkdir(mode=0o700)
    signer = Signer.create(keys / "trainer.key")
    prepare(config)
    weights = run_dir / layout.MODEL / "model.safetensors"
    write_policy(open_store(config), 0, None, "feeding", weights, signer, nonce=bytes(32))
    return config
