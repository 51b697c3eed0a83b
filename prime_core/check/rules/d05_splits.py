"""D05: train and test share no question."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject
from prime_core.check.texts import digest

PAIR = ("train", "test")


async def examine(subject: Subject) -> Result:
    """List both sides of a parameter `split`, and compare prompts."""
    assert subject.entry is not None
    await subject.lab.ready(subject)
    observation = await subject.lab.observation()
    parameters = observation.plugins.get(subject.entry.label, {}).get("parameters") or {}
    if not set(PAIR) <= set(parameters.get("splits", [])):
        return nothing_to_see("it has no parameter `split` with train and test")
    sides = {}
    for side in PAIR:
        listed = await subject.lab.listing(subject, params={"split": side})
        if listed.error:
            return failed(Finding(f"split {side!r} can't be listed: {listed.error}"))
        sides[side] = {digest(task.prompt): task for task in listed.tasks}
    both = sorted(sides["train"].keys() & sides["test"].keys())
    measures = {side: str(len(found)) for side, found in sides.items()}
    if not both:
        return failed(**measures)
    shown = sides["test"][both[0]]
    return failed(
        Finding(f"{len(both)} questions stand in train and in test, e.g. {shown.id}: "
                f"{shown.prompt[:100]!r}"), **measures
    )  # fmt: skip


RULE = Rule(
    id="D05",
    name="splits",
    title="The splits train and test share no question",
    level="bronze",
    cost="run",
    why="A test score on trained questions measures memory.",
    fix="split by a hash of the question: prime_core.api.datasets.in_split",
    bad="test = random.sample(tasks, 100); train = tasks",
    good="tasks = [task for task in tasks if in_split(task.question, params.split, 0.1)]",
    kinds=("environment",),
    examine=examine,
)
