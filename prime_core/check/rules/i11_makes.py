"""I11: the environment can be made, and lists its tasks."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed, passed
from prime_core.check.subject import Subject

LEAST = 10  # tasks: what a reader can look at, and a rate can be told from


async def examine(subject: Subject) -> Result:
    """Look at the listing."""
    found = await subject.lab.listing(subject)
    if found.error:
        return failed(Finding(f"while {found.phase}: {found.error}"))
    if found.count < LEAST:
        return failed(Finding(
            f"it has {found.count} tasks, {LEAST} are the least",
            fix="give it more tasks, or a case in checks.toml that has them"))  # fmt: skip
    broken = [view for view in found.sample if view.error]
    if broken:
        return failed(Finding(f"task {broken[0].id} (index {broken[0].index}): {broken[0].error}"))
    return passed(tasks=str(found.count))


RULE = Rule(
    id="I11",
    name="makes",
    title="The environment can be made without network, and has at least ten tasks",
    level="bronze",
    cost="run",
    why="Whatever can't be made offline can't be checked, and its data can change under a run.",
    fix="ship a sample, or name it in checks.toml, with nothing that needs the network",
    bad="def make(params, context):\n    return Words(requests.get(URL).text)",
    good="def make(params, context):\n    return Words(files(__package__).joinpath('words.txt'))",
    kinds=("environment",),
    examine=examine,
)
