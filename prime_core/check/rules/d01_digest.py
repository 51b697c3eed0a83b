"""D01: the declared digest is the one of the tasks."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see, passed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Hash the tasks here, and compare."""
    found = await subject.lab.ready(subject)
    assert found.info is not None
    if not found.whole:
        return nothing_to_see(f"only {len(found.tasks)} of {found.count} tasks are hashed")
    if found.info.dataset_digest != found.digest:
        return failed(Finding(
            f"info.dataset_digest is {found.info.dataset_digest[:16]}..., the tasks hash to "
            f"{found.digest[:16]}..."))  # fmt: skip
    return passed(digest=found.digest[:16])


RULE = Rule(
    id="D01",
    name="digest",
    title="info.dataset_digest is the digest of the tasks, in order",
    level="bronze",
    cost="run",
    why="A run locks this digest; if it says nothing about the tasks, data can change unseen.",
    fix="return tasks_digest(tasks) of prime_core.api.datasets",
    bad='dataset_digest="0" * 64',
    good="dataset_digest=tasks_digest(self.tasks())",
    kinds=("environment",),
    examine=examine,
)
