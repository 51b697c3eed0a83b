"""The submissions that one worker generates at the same time, in the order of their dispatch.

Used by `worker`. Invariants: they all have the policy version that is loaded, and they end in their
order: one that is complete waits for those before it, as the intake would, until one fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prime_core.rollout.produce import Produced
    from prime_core.store.records import Dispatch, Key

# Complete ones that wait for one before them, which may hang in a verifier: what is begun beside
# more of them would rest on receipts that are ever older.
MOST_UNSENT = 4


@dataclass(slots=True, eq=False)
class Submission:
    """One of them.

    Attributes:
        lane: its row in the trace; two that overlap have different ones.
        beside: submissions that were under way when it was begun.
        load_s, waited_s: what its worker spent before it on loading weights and on waiting for
            work.
        left: rollouts that hold a place in the engine's batch, or wait for one; one whose
            environment answers has none.
        producing: ends with its rows, or None where nobody needs them any more.
    """

    dispatch: Dispatch
    lane: str
    beside: int
    load_s: float
    waited_s: float
    left: int
    producing: asyncio.Task[Produced | None] = field(init=False)


Produce = Callable[[Submission], Coroutine[Any, Any, "Produced | None"]]


class UnderWay:
    """The submissions under way.

    Args:
        places: requests that the engine generates together where streams share its batch; 0 for an
            engine that works off one stream after the other.
        window: requests that it takes now, which may be fewer.
    """

    def __init__(self, places: int, window: Callable[[], float] = lambda: math.inf) -> None:
        self._places, self._window = places, window
        self._submissions: deque[Submission] = deque()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._submissions)

    @property
    def keys(self) -> frozenset[Key]:
        """Their dispatches' keys."""
        return frozenset(each.dispatch.key for each in self._submissions)

    @property
    def has_room(self) -> bool:
        """Whether the engine's batch has places that no rollout under way will fill.

        There is none while many are complete and can't be announced.
        """
        running = [each for each in self._submissions if not each.producing.done()]
        if len(self._submissions) - len(running) >= MOST_UNSENT:
            return False
        places = min(self._places, self._window())
        return not self._submissions or sum(each.left for each in running) < places

    def begin(
        self, dispatch: Dispatch, produce: Produce, *, load_s: float, waited_s: float
    ) -> None:
        """Begin one.

        Args:
            produce: makes its rows; calls `freed` as its rollouts give up their places.
        """
        lanes = {each.lane for each in self._submissions}
        names = ["main", *(f"beside {index}" for index in range(1, len(lanes) + 1))]
        submission = Submission(
            dispatch=dispatch,
            lane=next(name for name in names if name not in lanes),
            beside=len(self._submissions),
            load_s=load_s,
            waited_s=waited_s,
            left=dispatch.groups * dispatch.group_size,
        )
        submission.producing = asyncio.create_task(produce(submission))
        submission.producing.add_done_callback(lambda _: self._changed.set())
        self._submissions.append(submission)

    def freed(self, submission: Submission, count: int) -> None:
        """Rollouts gave their places back; took them again where the number is negative."""
        had_room = self.has_room
        submission.left -= count
        if self.has_room and not had_room:
            self._changed.set()

    async def change(self, at_most_s: float | None = None) -> None:
        """Wait until there is room where there was none, until one ends, or for so long."""
        self._changed.clear()
        if self.failed or (self._submissions and self._submissions[0].producing.done()):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._changed.wait()

    @property
    def failed(self) -> Submission | None:
        """The oldest one whose work raised."""
        return next((each for each in self._submissions if _has_failed(each)), None)

    def next_ended(self) -> Submission | None:
        """Take out the oldest one if it is complete; where one failed, the oldest that is."""
        for submission in self._submissions:
            if submission.producing.done() and not _has_failed(submission):
                self._submissions.remove(submission)
                return submission
            if not self.failed:
                break
        return None

    async def abandon(self) -> None:
        """Give all of them up: their dispatches stand, and are generated again after a restart."""
        given_up = [each.producing for each in self._submissions]
        self._submissions.clear()
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)


def _has_failed(submission: Submission) -> bool:
    task = submission.producing
    return task.done() and (task.cancelled() or task.exception() is not None)
