"""Runs an order to its end with a journal, so that it can be killed at any instant and go on.

Called by `scoring`, `measuring` and `profiles`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from prime_core.api.errors import EngineError
from prime_core.evaluation.crew import Crew
from prime_core.evaluation.journal import Journal
from prime_core.evaluation.orders import Order
from prime_core.evaluation.units import Unit
from prime_core.evaluation.work import RETRY

Progress: TypeAlias = Callable[[int, int], None]  # items done, items in all

HOPELESS = 20  # items given up in a row, with none answered, after which nothing more is asked


@dataclass(slots=True)
class Left:
    """Items without a result, which another run of the same command tries again.

    Attributes:
        reasons: how often each was given up for what.
    """

    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many."""
        return self.reasons.total()


async def run_order(
    order: Order,
    units: Iterator[Unit],
    total: int,
    journal: Journal,
    crew: Crew,
    progress: Progress,
) -> Left:
    """Do the units that the journal lacks; returns what was given up.

    A unit of which an item was given up isn't noted, so that another run does it again.

    Args:
        units: all of them, in order.
        total: items in all.

    Raises:
        EngineError: everything was given up from the start, so that going on is of no use.
        PrimeError: the crew can't go on.
    """
    left, sizes = Left(), _Sizes()
    done = 0
    answered = len(journal) > 0  # by an earlier process

    def missing() -> Iterator[Unit]:
        nonlocal done
        for unit in units:
            if unit.number in journal:
                done += len(unit.items)
            else:
                sizes.note(unit)
                yield unit

    def deliver(number: int, results: list[dict[str, Any]]) -> None:
        nonlocal done, answered
        given_up = [one[RETRY] for one in results if RETRY in one]
        left.reasons.update(given_up)
        if not given_up:
            answered = True
            journal.add(number, results)
            done += sizes.take(number)
            progress(done, total)
        elif not answered and left.count >= HOPELESS:
            raise EngineError(
                f"the first {left.count} requests were all given up: {given_up[-1]}",
                where="[engine]",
                fix="check the endpoint, then run this again",
            )

    await crew.run(order, missing(), deliver)
    progress(done, total)
    return left


class _Sizes:
    """Items of units that are under way."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    def note(self, unit: Unit) -> None:
        self._sizes[unit.number] = len(unit.items)

    def take(self, number: int) -> int:
        return self._sizes.pop(number)
