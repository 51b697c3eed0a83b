"""Tasks for a verifier that belongs to no environment: made from the gold answers of its case.

The lab calls it, so that the rules of environments judge verifiers too. Invariant: the same case
gives the same tasks.
"""

from __future__ import annotations

from prime_core.api import EnvironmentInfo, Message, Task
from prime_core.api.datasets import tasks_digest
from prime_core.check.checks_file import CaseEntry
from prime_core.check.measures import ListedTask, Listing, TaskView

# Numbers of one length, none a part of another, each once: the least that a verifier tells apart.
GOLDS = tuple(str(1009 + 373 * k) for k in range(24))


def golds(case: CaseEntry) -> tuple[str, ...]:
    """The case's gold answers, or two dozen numbers."""
    return case.golds or GOLDS


def tasks(case: CaseEntry) -> list[Task]:
    """One task a gold answer."""
    return [
        Task(
            id=f"made-{number}",
            prompt=(Message("user", f"Problem {number + 1} of a check."),),
            gold=gold,
            verification=dict(case.verification),
        )
        for number, gold in enumerate(golds(case))
    ]


def listing(case: CaseEntry) -> Listing:
    """As an environment with these tasks would be listed."""
    made = tasks(case)
    answers = [case.answer_format.replace("{gold}", gold) for gold in golds(case)]
    most = max(golds(case).count(gold) for gold in golds(case))
    digest = tasks_digest(made)
    info = EnvironmentInfo("made", "0", digest, "none", chance_level=most / len(made))
    return Listing(
        count=len(made),
        digest=digest,
        info=info,
        tasks=tuple(ListedTask(one.id, one.prompt[0].content, one.gold) for one in made),
        sample=tuple(
            TaskView(number, one.id, one.prompt[0].content, ("user",), answers[number])
            for number, one in enumerate(made)
        ),
        members=("gold",),
        again=digest,
        info_again=info,
    )
