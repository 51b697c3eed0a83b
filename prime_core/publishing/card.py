"""What the catalogue shows of a version: samples, and how scores of simple policies spread.

Called by `publish`. The wheel is installed into a throw-away virtual environment and asked through
an environment host, as a run would; nothing of it enters this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prime_core.api.errors import FormatError, PrimeError
from prime_core.api.types import Completion, Message, Score, Task
from prime_core.config.sections import EnvironmentChoice, HostingSection
from prime_core.hosting.pool import HostPool
from prime_core.publishing.publication import Dataset
from prime_core.publishing.scratch import interpreter_with
from prime_core.publishing.wheel import Wheel

FORMAT = "prime-core/card/1"
SAMPLES = 5  # tasks that are shown
MEASURED = 64  # tasks that policies are scored on, evenly spread
SHOWN = 4000  # characters of a text that is shown

Card = dict[str, Any]


def make_card(
    wheel: Wheel, path: Path, project: Path, scratch: Path, profile: Path | None
) -> tuple[Card, tuple[Dataset, ...]]:
    """The card, and the data sets of the wheel's environments.

    An environment that can't be opened with its default parameters, or those of the first case in
    checks.toml, is shown without samples, with the reason.

    Raises:
        FormatError: the profile isn't one.
        RunError: the wheel can't be installed.
    """
    names = [name for kind, name, _ in wheel.plugins if kind == "environment"]
    environments: list[Card] = []
    datasets: list[Dataset] = []
    python = interpreter_with(path, scratch / "venv") if names else Path(sys.executable)
    for name in names:
        choice = EnvironmentChoice.model_validate(
            {"use": name, "python": python, "with": _parameters(project, f"environment.{name}")}
        )
        try:
            shown = asyncio.run(_environment(choice, scratch))
        except PrimeError as error:
            environments.append({"name": name, "unavailable": error.what})
            continue
        environments.append(shown)
        datasets.append(
            Dataset(environment=name, tasks=shown["tasks"], sha256=shown["dataset_digest"])
        )
    return {
        "format": FORMAT,
        "readme": wheel.readme[: 16 * SHOWN],
        "environments": environments,
        "profile": None if profile is None else read_profile(profile),
    }, tuple(datasets)


def _parameters(project: Path, label: str) -> dict[str, Any]:
    """The parameters of a plugin's first case in checks.toml; {} where there is none."""
    try:
        cases = tomllib.loads((project / "checks.toml").read_text(encoding="utf-8")).get("cases")
    except (OSError, ValueError):
        return {}  # the check says what is wrong with the file
    for case in cases if isinstance(cases, list) else []:
        if isinstance(case, dict) and case.get("plugin") == label:
            text = json.dumps(case.get("with", {})).replace("{here}", str(project.resolve()))
            found: dict[str, Any] = json.loads(text)
            return found
    return {}


async def _environment(choice: EnvironmentChoice, scratch: Path) -> Card:
    hosting = HostingSection()
    async with await HostPool.open(
        choice, None, hosting, cache_dir=scratch / "cache", run_dir=None
    ) as pool:
        described = pool.description
        info = described.info
        indices = _spread(described.task_count, MEASURED)
        tasks = await pool.tasks(indices)
        prompts = await pool.render([(index, None) for index in indices])
        policies = await _policies(pool, indices, prompts)
        scores = {
            name: await pool.score(
                [(index, _said(text)) for index, text in zip(indices, texts, strict=True)]
            )
            for name, texts in policies.items()
        }
    shown = _spread(len(indices), SAMPLES)
    return {
        "name": choice.use,
        "params": dict(choice.params),
        "tasks": described.task_count,
        "dataset_digest": info.dataset_digest,
        "licence": info.licence,
        "score_range": list(info.score_range),
        "chance_level": info.chance_level,
        "deterministic": info.deterministic,
        "needs": list(info.needs),
        "multi_turn": described.multi_turn,
        "verifier": described.verifier,
        "measured": len(indices),
        "samples": [
            _sample(tasks[at], prompts[at], {n: (policies[n][at], scores[n][at]) for n in policies})
            for at in shown
        ],
        "distributions": [_distribution(name, found) for name, found in scores.items()],
    }


async def _policies(
    pool: HostPool, indices: Sequence[int], prompts: Sequence[Sequence[Message]]
) -> dict[str, list[str]]:
    """What policies that need no model say to each task."""
    policies: dict[str, list[str]] = {}
    if pool.description.has_gold:
        policies["gold"] = [await pool.gold(index) for index in indices]
        # an environment may have gold answers and no wrong ones
        with contextlib.suppress(PrimeError):
            policies["wrong"] = [await pool.wrong(index, 0) for index in indices]
    policies["empty"] = [""] * len(indices)
    policies["echo"] = [prompt[-1].content for prompt in prompts]
    return policies


def _said(text: str) -> Completion:
    return Completion(text, messages=(Message("assistant", text),), token_count=len(text) + 1)


def _sample(
    task: Task, prompt: Sequence[Message], said: dict[str, tuple[str, Score]]
) -> dict[str, Any]:
    return {
        "id": task.id[:SHOWN],
        "prompt": [[message.role, message.content[:SHOWN]] for message in prompt],
        "completions": [
            {"policy": name, "text": text[:SHOWN], "value": score.value, "status": score.status}
            for name, (text, score) in said.items()
            if name in ("gold", "wrong")
        ],
    }


def _distribution(name: str, scores: Sequence[Score]) -> dict[str, Any]:
    """How often each value was given, and each status without one."""
    values = Counter(score.value for score in scores if score.value is not None)
    others = Counter(score.status for score in scores if score.value is None)
    return {
        "policy": name,
        "values": sorted([value, count] for value, count in values.items()),
        "without_value": dict(sorted(others.items())),
    }


def _spread(count: int, most: int) -> list[int]:
    if count <= most:
        return list(range(count))
    return sorted({at * (count - 1) // (most - 1) for at in range(most)})


def read_profile(path: Path) -> Card:
    """How often a named model solves the tasks: a histogram of pass rates.

    Args:
        path: what `prime-core profile` wrote.

    Raises:
        FormatError: it isn't that.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as source:
            table = source.read(use_threads=False)
        settings = json.loads((table.schema.metadata or {})[b"prime_core"])
        passes, attempts = (table.column(name).to_pylist() for name in ("passes", "attempts"))
        histogram = Counter(int(p) for p in passes)
        most = max(map(int, attempts), default=0)
        return {
            "model": str(settings["model_digest"]),
            "environment": str(settings["environment"]),
            "dataset_digest": str(settings["dataset_digest"]),
            "attempts": most,
            "tasks": len(passes),
            "histogram": [[count, histogram[count]] for count in range(most + 1)],
            "signal": sum(0 < p < a for p, a in zip(passes, attempts, strict=True)),
        }
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
        raise FormatError(
            f"not a profile: {error}", where=str(path), fix="write one with `prime-core profile`"
        ) from error
