"""How rewards of stored rollouts differ between two versions: the arithmetic, and the files.

Called by `comparing`. Pure functions of two lists of scores; what has no score in one version and
one in the other counts as drift like any other change.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from packaging.version import Version

from prime_core.api.errors import FormatError

TOLERANCE = 1e-9
SHOWN = 20  # tasks that the report names


@dataclass(frozen=True, slots=True)
class Stored:
    """One stored rollout: whose group it's in, its task's id, what the model said."""

    group: str
    task: str
    completion: str


@dataclass(frozen=True, slots=True)
class TaskDrift:
    """How one task's rollouts changed: passes are rollouts with the highest score."""

    task: str
    rollouts: int
    changed: int
    passes_old: int
    passes_new: int


@dataclass(frozen=True, slots=True)
class Drift:
    """What changed between two versions.

    Attributes:
        rollouts, tasks, groups: what was looked at.
        changed: rollouts whose score or status differs.
        gained, lost: rollouts that reach the highest score now, or did and don't now.
        unscored_old, unscored_new: rollouts without a value.
        rank_correlation: Spearman's, over rollouts with a value in both; None where one version
            gives them all the same.
        advantage_change: mean absolute change of the group-normalised advantage over them.
        signal_old, signal_new: groups whose scores differ.
        flipped_groups: groups in which some advantage changed its sign.
        missing: ids of tasks that only one of the versions has.
        unknown: ids of tasks that neither has; their rollouts say nothing.
        reworded: ids of tasks whose prompt or gold answer differs.
        worst: the tasks with most changed rollouts.
    """

    rollouts: int
    tasks: int
    groups: int
    changed: int
    gained: int
    lost: int
    unscored_old: int
    unscored_new: int
    rank_correlation: float | None
    advantage_change: float
    signal_old: int
    signal_new: int
    flipped_groups: int
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    reworded: tuple[str, ...]
    worst: tuple[TaskDrift, ...]

    @property
    def drifts(self) -> bool:
        """Whether training on the new version is training on something else."""
        return bool(self.changed or self.missing or self.reworded)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**asdict(self), "drifts": self.drifts}


def allows_drift(old: str, new: str) -> bool:
    """Whether a version promises nothing about rewards of the other: a major bump.

    Below 1.0 the minor number is what a major one is above.
    """
    first, second = Version(old), Version(new)
    width = 1 if first.major or second.major else 2
    return first.release[:width] != second.release[:width] or first.epoch != second.epoch


def measure(
    rollouts: Sequence[Stored],
    old: Sequence[float | None],
    new: Sequence[float | None],
    *,
    highest: tuple[float, float],
    missing: Sequence[str] = (),
    unknown: Sequence[str] = (),
    reworded: Sequence[str] = (),
) -> Drift:
    """Compare scores of the same rollouts; None is a rollout without a value.

    Args:
        highest: the highest score of the old and of the new version.
    """
    differ = [_differ(a, b) for a, b in zip(old, new, strict=True)]
    passed = [(a == highest[0], b == highest[1]) for a, b in zip(old, new, strict=True)]
    both = [
        (stored.group, a, b)
        for stored, a, b in zip(rollouts, old, new, strict=True)
        if a is not None and b is not None
    ]
    groups = _advantages(both)
    moved = [abs(b - a) for first, second in groups for a, b in zip(first, second, strict=True)]
    by_task: defaultdict[str, list[int]] = defaultdict(list)
    for at, stored in enumerate(rollouts):
        by_task[stored.task].append(at)
    tasks = [
        TaskDrift(
            task,
            len(places),
            sum(differ[at] for at in places),
            sum(passed[at][0] for at in places),
            sum(passed[at][1] for at in places),
        )
        for task, places in by_task.items()
    ]
    worst = sorted((each for each in tasks if each.changed), key=lambda each: -each.changed)
    return Drift(
        rollouts=len(rollouts),
        tasks=len(tasks),
        groups=len({stored.group for stored in rollouts}),
        changed=sum(differ),
        gained=sum(b and not a for a, b in passed),
        lost=sum(a and not b for a, b in passed),
        unscored_old=sum(value is None for value in old),
        unscored_new=sum(value is None for value in new),
        rank_correlation=_spearman([a for _, a, _ in both], [b for _, _, b in both]),
        advantage_change=float(np.mean(moved)) if moved else 0.0,
        signal_old=sum(bool(np.any(first)) for first, _ in groups),
        signal_new=sum(bool(np.any(second)) for _, second in groups),
        flipped_groups=sum(bool(np.any(first * second < 0)) for first, second in groups),
        missing=tuple(missing),
        unknown=tuple(unknown),
        reworded=tuple(reworded),
        worst=tuple(worst[:SHOWN]),
    )


def _differ(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(old - new) > TOLERANCE


def _advantages(
    scored: Sequence[tuple[str, float, float]],
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Group-normalised advantages of each group, by the old and the new scores."""
    groups: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for group, old, new in scored:
        groups[group].append((old, new))
    pairs = [np.array(values, dtype=np.float64).T for values in groups.values()]
    return [(_normalised(old), _normalised(new)) for old, new in pairs]


def _normalised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.all(values == values[0]):
        return np.zeros_like(values)
    normalised: NDArray[np.float64] = (values - values.mean()) / values.std()
    return normalised


def _spearman(old: Sequence[float], new: Sequence[float]) -> float | None:
    """Rank correlation with ties at their mean rank; None where one side is constant."""
    if len(set(old)) < 2 or len(set(new)) < 2:
        return None
    first, second = _ranks(old), _ranks(new)
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(np.array(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: NDArray[np.float64] = (ends - (counts - 1) / 2)[inverse]
    return ranks


def read_rollouts(path: Path, environment: str) -> list[Stored]:
    """Stored rollouts of an environment.

    Args:
        path: JSON lines: either `task`, `completion` and, if it has one, `group` a line, or what
            the observer `samples` writes, a group a line with its `rollouts`.
        environment: lines of other environments are skipped.

    Raises:
        FormatError: it isn't that, or holds nothing of the environment.
    """
    found: list[Stored] = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    row = _row(line, f"{path}:{number}")
                    found += _stored(row, environment, f"{path}:{number}")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"can't be read: {error}", where=str(path)) from error
    if not found:
        raise FormatError(f"holds no rollouts of environment {environment}", where=str(path))
    return found


def _row(line: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError("not JSON", where=where) from error
    if not isinstance(row, dict):
        raise FormatError("not a JSON object", where=where)
    return row


def _stored(row: Mapping[str, Any], environment: str, where: str) -> Iterator[Stored]:
    if "full_at_bytes" in row or row.get("environment", environment) != environment:
        return
    task = row.get("task")
    rollouts = row.get("rollouts", [row])
    if not isinstance(task, str) or not isinstance(rollouts, list):
        raise FormatError("has no task id", where=where, fix="write task and completion")
    for each in rollouts:
        said = each.get("completion") if isinstance(each, dict) else None
        if not isinstance(said, str):
            raise FormatError("has no completion", where=where, fix="write task and completion")
        yield Stored(str(row.get("group", task)), task, said)
