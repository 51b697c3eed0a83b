"""Scores stored rollouts with two versions of a distribution: what `prime-core diff` does.

Each version is installed into a throw-away interpreter of its own and asked through environment
hosts; `drift` says what came out.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.api.datasets import task_json
from prime_core.api.errors import FormatError
from prime_core.api.types import Completion, Message
from prime_core.config.sections import EnvironmentChoice, HostingSection
from prime_core.hosting.pool import HostPool
from prime_core.publishing.audit import check_wheel
from prime_core.publishing.drift import Drift, Stored, allows_drift, measure, read_rollouts
from prime_core.publishing.resolve import Policy, choose, parse
from prime_core.publishing.scratch import interpreter_with
from prime_core.publishing.source import open_source, wheel_bytes
from prime_core.publishing.wheel import Wheel, build, read_wheel


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two versions: its wheel, and where it lies."""

    wheel: Wheel
    path: Path


@dataclass(frozen=True, slots=True)
class Compared:
    """Two versions held against each other.

    Attributes:
        allowed: the versions differ by a major bump, so that drift is no surprise.
    """

    name: str
    old: str
    new: str
    environment: str
    allowed: bool
    drift: Drift


@dataclass(frozen=True, slots=True)
class _Scored:
    """Values of the rollouts, JSON of the tasks by id, and the highest score."""

    values: list[float | None]
    tasks: dict[str, bytes]
    highest: float


def compare(
    old: str,
    new: str,
    rollouts: Path,
    *,
    url: str | None,
    policy: Policy,
    environment: str | None = None,
    params: Mapping[str, Any] | None = None,
) -> Compared:
    """Compare two versions.

    Args:
        old, new: NAME==V of the index at `url`, a wheel, or a project's folder.
        environment: the plugin's name; None for the only one.
        params: its parameters.

    Raises:
        FormatError: the two aren't versions of one distribution, or have no such environment.
        PrimeError: as `install` and `build`, and for environments that can't be opened.
    """
    with tempfile.TemporaryDirectory(prefix="prime-core-diff-") as folder:
        scratch = Path(folder)
        sides = [
            _side(text, scratch / place, url, policy)
            for text, place in ((old, "old"), (new, "new"))
        ]
        wheels = [side.wheel for side in sides]
        name = _environment(wheels, environment)
        stored = read_rollouts(rollouts, name)
        scored = []
        for side, place in zip(sides, ("old", "new"), strict=True):
            python = interpreter_with(side.path, scratch / place / "venv")
            choice = EnvironmentChoice.model_validate(
                {"use": name, "python": python, "with": dict(params or {})}
            )
            scored.append(asyncio.run(_score(choice, stored, scratch / "cache")))
    first, second = scored
    known = {task.task for task in stored}
    shared = first.tasks.keys() & second.tasks.keys()
    drift = measure(
        stored,
        first.values,
        second.values,
        highest=(first.highest, second.highest),
        missing=sorted(first.tasks.keys() ^ second.tasks.keys()),
        unknown=sorted(known - first.tasks.keys() - second.tasks.keys()),
        reworded=sorted(task for task in shared if first.tasks[task] != second.tasks[task]),
    )
    before, after = wheels[0].version, wheels[1].version
    return Compared(wheels[0].name, before, after, name, allows_drift(before, after), drift)


def _side(text: str, folder: Path, url: str | None, policy: Policy) -> Side:
    folder.mkdir()
    place = Path(text)
    if place.is_dir():
        place = build(place, folder / "build")
    elif not place.is_file():
        if url is None:
            raise FormatError(
                f"{text} is no folder and no wheel", fix="give --from URL for NAME==V of an index"
            )
        source = open_source(url)
        release = choose(source, parse(text), policy, None)
        data = wheel_bytes(source, release)
        check_wheel(release, data)
        place = folder / release.record.value.filename
        place.write_bytes(data)
    return Side(read_wheel(place.read_bytes(), place.name), place)


def _environment(wheels: Sequence[Wheel], asked: str | None) -> str:
    if wheels[0].name != wheels[1].name:
        raise FormatError(
            f"{wheels[0].name} and {wheels[1].name} aren't versions of one distribution"
        )
    both = [{name for kind, name, _ in wheel.plugins if kind == "environment"} for wheel in wheels]
    names = sorted(both[0] & both[1])
    if asked is None and len(names) == 1:
        return names[0]
    if asked in names:
        return asked
    offered = ", ".join(names) or "none"
    raise FormatError(f"environments of both versions: {offered}", fix="name one: --environment")


async def _score(choice: EnvironmentChoice, stored: Sequence[Stored], cache: Path) -> _Scored:
    """Score what an environment has tasks for; the other rollouts have no value."""
    async with await HostPool.open(
        choice, None, HostingSection(), cache_dir=cache, run_dir=None
    ) as pool:
        ids = list(dict.fromkeys(each.task for each in stored))
        places = {task: await pool.find(task) for task in ids}
        found = {task: at for task, at in places.items() if at is not None}
        tasks = await pool.tasks(list(found.values()))
        at = [index for index, each in enumerate(stored) if each.task in found]
        scores = await pool.score(
            [(found[stored[index].task], _said(stored[index].completion)) for index in at]
        )
        highest = pool.description.info.score_range[1]
    values: list[float | None] = [None] * len(stored)
    for index, score in zip(at, scores, strict=True):
        values[index] = score.value
    return _Scored(values, {task.id: task_json(task) for task in tasks}, highest)


def _said(text: str) -> Completion:
    return Completion(text, messages=(Message("assistant", text),), token_count=len(text) + 1)
