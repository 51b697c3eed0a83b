"""U01: a named model solves some tasks sometimes."""

from __future__ import annotations

from prime_core.check.bounds import interval
from prime_core.check.evidence import evidence, numbers
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

LEAST_TASKS = 100
LEAST_SIGNAL = 0.1  # share of groups with different scores; below it, training is mostly waiting


async def examine(subject: Subject) -> Result:
    """Read the profile; pass@1, pass@k and the share of groups with signal are its measures."""
    found = await evidence(subject, "profile")
    if isinstance(found, Result):
        return found
    samples = int(found.get("samples", 0))
    passes = [int(each) for each in numbers(found.get("passes"), "passes")]
    signal = sum(0 < each < samples for each in passes)
    solved = sum(each > 0 for each in passes)
    measures = {
        "model": str(found.get("model", "")),
        "pass@1": interval(sum(passes), samples * len(passes)),
        f"pass@{samples}": interval(solved, len(passes)),
        "groups with signal": interval(signal, len(passes)),
    }
    findings = []
    if len(passes) < LEAST_TASKS or samples < 2:
        findings.append(Finding(f"{len(passes)} tasks with {samples} samples are too few"))
    elif signal < LEAST_SIGNAL * len(passes):
        findings.append(Finding(
            f"only {measures['groups with signal']} of the groups have signal",
            fix="add tasks of a difficulty at which the model sometimes succeeds"))  # fmt: skip
    return failed(*findings, **measures)


RULE = Rule(
    id="U01",
    name="profile",
    title="A profile with a named model shows tasks that are neither always nor never solved",
    level="gold",
    cost="train",
    why="A group whose rollouts all score alike teaches nothing.",
    fix="run `prime-core check PATH --prove profile --model M`; name the file in checks.toml",
    bad="[evidence]\n# no profile",
    good='[evidence]\nprofile = "evidence/profile.json"',
    kinds=("environment",),
    examine=examine,
)
