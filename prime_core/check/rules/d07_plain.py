"""D07: tasks are plain data, prompts end where the model speaks, info is complete."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Look at the listing."""
    found = await subject.lab.ready(subject)
    info = found.info
    assert info is not None
    findings = []
    if found.not_json:
        findings.append(Finding(f"not plain JSON: {found.not_json}"))
    low, high = info.score_range
    if not low < high:
        findings.append(Finding(f"score_range {info.score_range} is empty"))
    elif not low <= info.chance_level < high:
        findings.append(Finding(f"chance level {info.chance_level} isn't in [{low}, {high})"))
    missing = [name for name in ("name", "version", "licence") if not getattr(info, name)]
    findings += [Finding(f"info.{name} is empty") for name in missing]
    for view in found.sample:
        if view.error:
            continue
        if not view.roles or view.roles[-1] == "assistant":
            said = "with the model's own words" if view.roles else "with nothing"
            findings.append(Finding(f"the prompt of task {view.id} ends {said}"))
            break
    return failed(*findings)


RULE = Rule(
    id="D07",
    name="plain",
    title="Tasks are plain JSON, prompts end where the model speaks, and info is complete",
    level="bronze",
    cost="run",
    why="What crosses to a host and back is JSON; a tuple, a set or a NaN arrives changed.",
    fix="use texts, numbers, lists and objects; fill in every field of EnvironmentInfo",
    bad="verification={'words': {'a', 'b'}}",
    good="verification={'words': ['a', 'b']}",
    kinds=("environment",),
    examine=examine,
)
