"""D06: no task holds a text of a declared evaluation set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from prime_core.check.distribution import read_source
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see
from prime_core.check.subject import Subject
from prime_core.check.texts import Corpus


async def examine(subject: Subject) -> Result:
    """Compare prompts with the sets' texts: whole, and by runs of thirteen words."""
    sets = subject.distribution.checks.evaluation_sets
    if not sets:
        return nothing_to_see("checks.toml declares no evaluation_sets")
    root = subject.distribution.source
    texts: list[str] = []
    for name in sets:
        found = list(_texts(Path(name) if root is None else root / name))
        if not found:
            return failed(Finding(f"the evaluation set {name} has no texts", path="checks.toml"))
        texts += found
    corpus = Corpus(texts)
    listing = await subject.lab.ready(subject)
    bad = [task for task in listing.tasks if corpus.holds(task.prompt)]
    measures = {"texts": str(len(texts)), "overlapping": f"{len(bad)} of {len(listing.tasks)}"}
    if not bad:
        return failed(**measures)
    return failed(
        Finding(f"{len(bad)} tasks hold texts of the evaluation sets, e.g. {bad[0].id}: "
                f"{bad[0].prompt[:100]!r}"), **measures
    )  # fmt: skip


def _texts(path: Path) -> Iterator[str]:
    """Every text of a JSONL file: a line that is one, or the texts of an object."""
    for line in read_source(path).splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue  # the last line of a file longer than what is read
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (each for each in value.values() if isinstance(each, str) and len(each) > 20)


RULE = Rule(
    id="D06",
    name="contamination",
    title="No task holds a text of an evaluation set that checks.toml declares",
    level="silver",
    cost="run",
    why="A model that was trained on the questions of a benchmark scores on it, and nowhere else.",
    fix="leave these tasks out",
    bad='evaluation_sets = ["eval/questions.jsonl"]   # and tasks that copy them',
    good="tasks = [task for task in tasks if task.question not in evaluation_questions]",
    kinds=("environment",),
    examine=examine,
)
