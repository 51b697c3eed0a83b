"""R05: a task that can't be judged is an error, never a wrong answer."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score gold completions of tasks without gold answer and verification data."""
    listing = await subject.lab.ready(subject)
    assert listing.info is not None
    if "gold" not in listing.members:
        return nothing_to_see("the environment has no gold(task)")
    found = await subject.lab.broken(subject)
    highest = listing.info.score_range[1]
    findings = []
    for case in found["cases"]:
        broken = case["broken"]
        if broken["value"] is None or case["whole"]["value"] != highest:
            continue
        if broken["value"] == highest:
            return nothing_to_see("the verifier needs neither gold answer nor verification data")
        findings.append(
            Finding(
                f"without its gold answer and verification data, task {case['id']} gives its gold "
                f"completion {broken['value']} ({broken['status']})"
            )
        )
    return failed(*findings[:1], cases=str(len(found["cases"])))


RULE = Rule(
    id="R05",
    name="broken-data",
    title="A task that can't be judged is an error, not a wrong answer",
    level="silver",
    cost="run",
    why="Frameworks have turned errors into the reward 0: hours of groups that scored zero, and "
    "nobody saw that the data was broken.",
    fix='return Score(None, "error", evidence={"kind": "gold", ...}) where the task lacks its data',
    bad="return Score(1.0 if answer == task.gold else 0.0)   # task.gold may be None",
    good='if task.gold is None:\n    return Score(None, "error", evidence={"kind": "gold"})',
    kinds=("environment",),
    examine=examine,
)
