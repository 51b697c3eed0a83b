"""D04: no question is asked twice."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, Severity, failed
from prime_core.check.subject import Subject
from prime_core.check.texts import digest


async def examine(subject: Subject) -> Result:
    """Compare prompts; the same question with two answers is an error, twice the same a warning."""
    found = await subject.lab.ready(subject)
    seen: dict[str, int] = {}
    same: list[tuple[int, int]] = []
    contradictions: list[tuple[int, int]] = []
    for number, task in enumerate(found.tasks):
        first = seen.setdefault(digest(task.prompt), number)
        if first == number:
            continue
        other = found.tasks[first].gold
        (same if other == task.gold else contradictions).append((first, number))
    findings = [
        Finding(f"tasks {a} and {b} ask the same and want {found.tasks[a].gold!r} and "
                f"{found.tasks[b].gold!r}")
        for a, b in contradictions[:3]
    ]  # fmt: skip
    if same:
        a, b = same[0]
        severity: Severity = "error" if len(same) > len(found.tasks) / 100 else "warning"
        findings.append(Finding(
            f"{len(same)} of {len(found.tasks)} tasks repeat another's question, e.g. {a} and {b}",
            severity=severity))  # fmt: skip
    return failed(*findings, repeated=str(len(same)), contradicting=str(len(contradictions)))


RULE = Rule(
    id="D04",
    name="duplicates",
    title="No question is asked twice, and none has two answers",
    level="bronze",
    cost="run",
    why="A repeated task weighs more than it says, and in both splits it's trained and tested.",
    fix="leave repeated questions out when the tasks are made",
    bad='[Task("1", "2+2=", gold="4"), Task("2", "2+2=", gold="5")]',
    good="tasks = list({task.prompt: task for task in tasks}.values())",
    kinds=("environment",),
    examine=examine,
)
