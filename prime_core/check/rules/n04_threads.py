"""N04: the number of threads and another process change nothing."""

from __future__ import annotations

from prime_core.check.repeating import THREADS, under
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Tasks and scores in a second process, with more threads."""
    return await under(subject, THREADS)


RULE = Rule(
    id="N04",
    name="threads",
    title="Tasks and scores are the same in every process, with any number of threads",
    level="silver",
    cost="run",
    why="Sums in another order round differently; process ids, times and addresses differ always.",
    fix="leave os.getpid(), time and id() out of tasks and scores; sum in a fixed order",
    bad="return Score(0.0 if os.getpid() % 2 else 1.0)",
    good="return Score(1.0 if answer == task.gold else 0.0)",
    kinds=("environment", "verifier"),
    examine=examine,
)
