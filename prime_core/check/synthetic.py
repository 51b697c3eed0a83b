"""Tasks for a verifier that belongs to no environment: made from the gold answers of its case.

The lab calls it, so that the rules of environments judge verifiers too. Invariant: the same case
gives the same tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prime_core.api import EnvironmentInfo, FormatError, Message, Task
from prime_core.api.datasets import tasks_digest
from prime_core.check.checks_file import CaseEntry
from prime_core.check.measures import ListedTask, Listing, TaskView
from prime_core.check.plain_files import read_plain
from prime_core.check.subject import Blocked
from prime_core.hosting import values

LIMIT = 64 << 20  # bytes of a file of tasks
# Numbers of one length, none a part of another, each once: the least that a verifier tells apart.
GOLDS = tuple(str(1009 + 373 * k) for k in range(24))


def golds(case: CaseEntry) -> tuple[str, ...]:
    """The case's gold answers, or two dozen numbers."""
    return case.golds or GOLDS


def tasks(case: CaseEntry) -> list[Task]:
    """One task a line of the case's file, or one a gold answer."""
    if case.tasks:
        return [
            Task(
                id=f"made-{number}",
                prompt=(Message("user", str(row.get("prompt", f"Problem {number + 1}."))),),
                gold=row.get("gold"),
                verification=row.get("verification", {}),
            )
            for number, row in enumerate(_rows(case.tasks))
        ]
    return [
        Task(
            id=f"made-{number}",
            prompt=(Message("user", f"Problem {number + 1} of a check."),),
            gold=gold,
        )
        for number, gold in enumerate(golds(case))
    ]


def _rows(path: str) -> list[dict[str, Any]]:
    """The lines of a task file.

    Raises:
        Blocked: it can't be read as JSON objects that each hold a completion.
    """
    try:
        lines = read_plain(Path(path), LIMIT).decode("utf-8").splitlines()
        rows = [values.mapping(json.loads(line), "a task") for line in lines if line.strip()]
        for row in rows:
            values.text(row.get("completion"), "completion")
    except (OSError, ValueError, RecursionError, FormatError) as error:
        raise Blocked(f"the tasks of {path} can't be read: {error}") from error
    return rows


def _answers(case: CaseEntry) -> list[str]:
    """The completion that solves each task."""
    if case.tasks:
        return [str(row["completion"]) for row in _rows(case.tasks)]
    return [case.answer_format.replace("{gold}", gold) for gold in golds(case)]


def listing(case: CaseEntry) -> Listing:
    """As an environment with these tasks would be listed.

    Raises:
        Blocked: the case's file can't be read.
    """
    made = tasks(case)
    answers = _answers(case)
    most = max(answers.count(answer) for answer in answers)
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
