"""Reads a data set through its layout: gold answers, unusable rows, duplicates, overlaps.

Called by the environment. Invariant: every row that is left out is counted under its reason, the
first ones by id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prime_core.api import Context, DatasetError, Task
from prime_core.api.datasets import DatasetSource, load_tasks
from prime_env_math.near_misses import last_box
from prime_env_math.overlap import EvaluationIndex, Finding, duplicates
from prime_env_math.params import MathParams, Policy
from prime_env_math.sources import CUSTOM, LAYOUTS, Layout

SHOWN = 20  # ids that a note or an error spells out


@dataclass(frozen=True, slots=True)
class Loaded:
    """Tasks without their prompts' style, and notes on what was left out."""

    tasks: tuple[Task, ...]
    notes: tuple[str, ...]
    licence: str


def load(params: MathParams, context: Context) -> Loaded:
    """The tasks of the data set that the parameters name.

    Raises:
        DatasetError: it can't be read, or holds what the parameters refuse.
    """
    assert params.dataset is not None  # the parameters say so
    layout = LAYOUTS.get(params.source, CUSTOM)
    source = with_layout(params.dataset, layout)
    table = load_tasks(source, context)
    notes = [*_listed("bad rows left out", table.bad_rows)]
    tasks: list[Task] = []
    unusable: dict[str, list[str]] = {}
    for task in table:
        judged = with_gold(task, layout)
        reason = layout.unusable(judged) or ("" if judged.gold else "it has no gold answer")
        if reason:
            unusable.setdefault(reason, []).append(task.id)
        else:
            tasks.append(judged)
    for reason, ids in unusable.items():
        notes += _listed(f"tasks left out ({reason})", ids)
    where = f"environment math, {', '.join(source.urls)}"
    tasks = _apply(params.duplicates, "duplicates", tasks, list(duplicates(tasks)), notes, where)
    if params.evaluation_sets:
        index = EvaluationIndex(_evaluation_tasks(params, layout, context), params.ngram)
        found = list(index.overlaps(tasks))
        tasks = _apply(params.overlap, "overlap", tasks, found, notes, where)
    if not tasks:
        raise DatasetError("no task is left", where=where, fix="; ".join(notes) or None)
    return Loaded(tuple(tasks), tuple(notes), layout.licence)


def with_layout(source: DatasetSource, layout: Layout) -> DatasetSource:
    """The source with the layout's columns where the config names none of its own."""
    columns: dict[str, object] = {**layout.columns}
    columns |= {str(field): column for field, column in source.columns.items()}
    changed: dict[str, object] = {"columns": columns}
    if "metadata_columns" not in source.model_fields_set:
        changed["metadata_columns"] = layout.metadata
    if "task_types" not in source.model_fields_set:
        changed["task_types"] = layout.task_types
    return source.model_copy(update=changed)


def with_gold(task: Task, layout: Layout) -> Task:
    """The task with its gold answer where the layout says it stands; None where it isn't."""
    if layout.gold == "boxed" and task.gold is not None:
        # A column of bare answers has no box.
        return replace(task, gold=last_box(task.gold) if r"\boxed" in task.gold else task.gold)
    if layout.gold == "verification" and task.gold is None:
        found = task.verification.get("ground_truth")
        return replace(task, gold=None if found is None else str(found).strip())
    return task


def _evaluation_tasks(
    params: MathParams, layout: Layout, context: Context
) -> Iterator[tuple[str, Task]]:
    """The tasks of the evaluation sets; columns that they don't name are the training set's."""
    for source in params.evaluation_sets:
        named = source if source.columns else with_layout(source, layout)
        for task in load_tasks(named, context):
            yield ", ".join(source.urls), with_gold(task, layout)


def _apply(
    policy: Policy,
    option: str,
    tasks: list[Task],
    findings: Sequence[Finding],
    notes: list[str],
    where: str,
) -> list[Task]:
    """The tasks that the policy leaves; adds to the notes."""
    if not findings:
        return tasks
    lines = [str(finding) for finding in findings]
    if policy == "refuse":
        raise DatasetError(
            "; ".join(_listed(option, lines)),
            where=where,
            fix=f'repair the data, or set {option} = "drop" or "report"',
        )
    notes += _listed(f"{option}, {'left out' if policy == 'drop' else 'kept'}", lines)
    if policy == "report":
        return tasks
    gone = {finding.id for finding in findings}
    return [task for task in tasks if task.id not in gone]


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    """One note: how many, and the first ones; [] for none."""
    if not lines:
        return []
    more = f", and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return [f"{len(lines)} {title}: {'; '.join(lines[:SHOWN])}{more}"]
