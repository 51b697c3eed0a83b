"""Makes the evidence of level gold: a profile, a short training run, a replay of scores.

`prime-core check --prove` calls it; the first two are other commands of prime-core, run as
subprocesses. Invariant: what is written was measured by this call, on the tasks whose digest it
holds.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prime_core.api import RunError
from prime_core.check import pathological, policies
from prime_core.check.checking import Order, taken_names
from prime_core.check.evidence import Kind, seal
from prime_core.check.lab import Lab
from prime_core.check.launching import Launcher
from prime_core.check.measures import Listing
from prime_core.check.staging import stage
from prime_core.check.subject import Subject

FOLDER = "evidence"
REPLAYED = 24  # tasks whose scores are stored


def prove(order: Order, kind: Kind, *, model: str = "", config: Path | None = None) -> Path:
    """Measure, and write evidence/<kind>.json into the source; blocks.

    Args:
        model: of a profile: a model directory or package:NAME.
        config: of a training: the run config.

    Raises:
        RunError: an argument is missing, a command failed, or the target isn't a source folder.
    """
    scratch = Path(tempfile.mkdtemp(prefix="prime-prove-"))
    try:
        return asyncio.run(_prove(order, kind, model, config, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _prove(order: Order, kind: Kind, model: str, config: Path | None, scratch: Path) -> Path:
    launcher = Launcher(scratch, order.python, [scratch / "site"])
    distribution = await stage(order.target, scratch, launcher)
    entries = [entry for entry in distribution.entries if entry.kind == "environment"]
    if distribution.source is None or not entries:
        raise RunError("evidence is made in the source folder of an environment")
    lab = Lab(distribution, scratch, launcher, order.limits, taken_names(distribution))
    case = distribution.checks.for_plugin(entries[0].label)[0]
    subject = Subject(distribution, lab, entries[0], case)
    try:
        listing = await lab.ready(subject)
        if kind == "replay":
            body = await _replay(subject, listing)
        elif kind == "profile":
            body = _profile(subject, model, scratch)
        else:
            body = _training(config)
    finally:
        await lab.close()
    assert listing.info is not None
    path = distribution.source / FOLDER / f"{kind}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(seal(kind, entries[0].label, listing.info.dataset_digest, body))
    return path


async def _replay(subject: Subject, listing: Listing) -> dict[str, Any]:
    bench = await subject.lab.bench(subject)
    fixed = [*policies.empty(), *policies.constants()[::9], *policies.tags()[:4]]
    fixed += [each for each in pathological.completions() if len(each.text) < 1000]
    items = []
    for view in listing.sample[:REPLAYED]:
        golds = [] if view.gold is None else [view.gold]
        texts = [*golds, *view.wrong, *view.writings, *(each.text for each in fixed)]
        items += [(view.index, text) for text in texts]
    judged = await bench.judge(items)
    return {
        "scores": [
            [one.index, one.text, one.score.status,
             None if one.score.value is None else one.score.value.hex()]
            for one in judged
        ]
    }  # fmt: skip


def _profile(subject: Subject, model: str, scratch: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    if not model:
        raise RunError("a profile needs a model", fix="give --model")
    assert subject.entry is not None
    assert subject.case is not None
    given = [f"{key}={json.dumps(value)}" for key, value in subject.case.params.items()]
    options = [word for each in given for word in ("--with", each)]
    out = scratch / "profiles"
    command = ["profile", subject.entry.name, "--model", model, "--tasks", "200", "-k", "8"]
    _run([*command, "--out", str(out), *options])
    with pq.ParquetFile(next(out.glob("*.parquet"))) as source:
        table = source.read(use_threads=False)
    settings = json.loads(table.schema.metadata[b"prime_core"])
    return {
        "model": model.rpartition("/")[2],
        "model_digest": settings["model_digest"],
        "samples": settings["samples"],
        "passes": table.column("passes").to_pylist(),
    }


def _training(config: Path | None) -> dict[str, Any]:
    from prime_core.config.load import load
    from prime_core.store.metrics import read_metrics

    if config is None:
        raise RunError("a training needs a run config", fix="give --config")
    _run(["train", str(config)])
    run_dir = Path(load(config).config.run.dir)
    rewards = [
        float(record["reward/mean"]) for record in read_metrics(run_dir) if "reward/mean" in record
    ]
    return {"config": config.read_text(encoding="utf-8"), "rewards": rewards}


def _run(arguments: Sequence[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "prime_core", *arguments], check=False)
    if done.returncode != 0:
        raise RunError(f"prime-core {arguments[0]} ended with code {done.returncode}")
