"""T03: repeating the prompt isn't paid above chance."""

from __future__ import annotations

from prime_core.check.bounds import exceeds, interval
from prime_core.check.paying import share
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Score the prompt as completion: bare, and behind the words of a thinking model."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    chance = share(info.chance_level, info)
    findings = []
    measures = {}
    whole = len(views) == listing.count
    for name, wrapper in (("the prompt", "{}"), ("the prompt twice", "{0}\n{0}")):
        judged = await bench.judge([(view.index, wrapper.format(view.prompt)) for view in views])
        total = sum(share(each.value, info) for each in judged)
        measures[name] = interval(round(total), len(judged))
        if exceeds(total, len(judged), chance, whole, comparisons=2):
            at = max(range(len(judged)), key=lambda number: judged[number].value)
            findings.append(Finding(
                f"{name} as completion earns {total / len(judged):.4f} of the range on average "
                f"over {len(judged)} tasks; chance is {chance:.4f}",
                exploit=judged[at].exploit(views[at].id)))  # fmt: skip
    return failed(*findings, **measures)


RULE = Rule(
    id="T03",
    name="echo",
    title="Repeating the prompt earns no more than chance",
    level="bronze",
    cost="run",
    why="Prompts hold options, examples and sometimes the answer; a verifier that searches the "
    "text for it finds it there.",
    fix="judge what stands in the answer's place, not the whole text; keep answers out of prompts",
    bad="return Score(1.0 if task.gold in completion.text else 0.0)",
    good="answer = completion.text.rpartition('Answer:')[2].strip()",
    kinds=("environment", "verifier"),
    examine=examine,
)
