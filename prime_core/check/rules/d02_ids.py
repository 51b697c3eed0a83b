"""D02: task ids are unique."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Look at the ids of the listed tasks."""
    found = await subject.lab.ready(subject)
    seen: dict[str, int] = {}
    findings = []
    for number, task in enumerate(found.tasks):
        first = seen.setdefault(task.id, number)
        if first != number or not task.id:
            said = f"tasks {first} and {number} both have the id {task.id!r}"
            findings.append(Finding(said if task.id else f"task {number} has an empty id"))
    return failed(*findings[:3], tasks=str(len(found.tasks)))


RULE = Rule(
    id="D02",
    name="ids",
    title="Every task has an id, and no two have the same",
    level="bronze",
    cost="run",
    why="Profiles, filters and outcomes are kept by task id; hosts refuse a list with two alike.",
    fix="number the tasks, or make the id from their content",
    bad="Task(id=word[0], ...)",
    good='Task(id=f"word-{number}", ...)',
    kinds=("environment",),
    examine=examine,
)
