"""Finds a worker's next work in the store, or says for whom it waits.

Called by the worker before each submission, and while others are under way. With one worker that
does one thing at a time and an exact lag the answers depend on the receipts alone, not on the
moment of asking, so that a restarted run dispatches the same work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from prime_core.store.counter import StepRules, Wait, Work, next_step

if TYPE_CHECKING:
    from prime_core.store.metrics import MetricsLog
    from prime_core.store.records import Dispatch, Key
    from prime_core.store.trace import Trace
    from prime_core.store.view import StoreView

logger = logging.getLogger(__name__)

POLL_S = 0.02  # a fresh local file is noticed within this; a wait soon polls more rarely
SLOW_POLL_S = 0.1
SAY_EVERY_S = 30.0
OUTSTANDING = 2  # submissions without receipts that don't keep a node from going on


class Seeker:
    """One worker's eye on the store."""

    def __init__(
        self,
        view: StoreView,
        rules: StepRules,
        node: str,
        nodes: Collection[str],
        metrics: MetricsLog,
        trace: Trace,
        held: Callable[[], Collection[int]] | None = None,
        outstanding: int = 1,
    ) -> None:
        """Make one.

        Args:
            nodes: those that still work: a dead one's unfinished work isn't waited for.
            held: says which versions this node can load, None for every sealed one.
            outstanding: submissions that may wait for their receipts while the next is generated;
                with more than 1 the work depends on when receipts come. Beside work that is
                under way it's at least `OUTSTANDING`.
        """
        self._held = held
        self._view, self._rules, self._node, self._nodes = view, rules, node, nodes
        self._metrics, self._trace = metrics, trace
        self._outstanding = outstanding
        self.waited_s = 0.0

    def is_useful(self, dispatch: Dispatch) -> bool:
        """Whether an open step may still take the dispatch's groups."""
        self._view.refresh()
        return self._serves(dispatch)

    def _serves(self, dispatch: Dispatch) -> bool:
        last = self._rules.last_step(dispatch.step, dispatch.policy_version)
        return min(last, self._rules.steps - 1) >= self._view.first_open

    async def seek(self) -> Dispatch | Work | None:
        """A dispatch to generate again, new work, or None when the run needs no more."""
        found = self.look()
        if not isinstance(found, Wait):
            self.waited_s = 0.0
            return found
        since, said = time.time(), time.monotonic()
        with self._trace.span("wait", reason=found.reason) as details:
            while isinstance(found, Wait) and not found.over:
                details["reason"] = found.reason
                if time.monotonic() - said > SAY_EVERY_S:
                    said = time.monotonic()
                    self._say(found, since)
                await asyncio.sleep(POLL_S if time.time() - since < 1 else SLOW_POLL_S)
                found = self.look()
        self.waited_s = time.time() - since
        return None if isinstance(found, Wait) else found

    def next_index(self, step: int) -> int:
        """The index of this node's next submission for a step."""
        return self._view.next_index(step, self._node)

    def look(self, under_way: Collection[Key] = ()) -> Dispatch | Work | Wait:
        """What there is to do now.

        Args:
            under_way: dispatches that the node generates already.
        """
        self._view.refresh()
        held = None if self._held is None else self._held()
        for dispatch in self._view.unfinished(self._node, self._rules):
            if dispatch.key not in under_way and self._serves(dispatch):
                if held is not None and dispatch.policy_version not in held:
                    return Wait(f"policy version {dispatch.policy_version} to be on this node")
                return dispatch
        # The receipts of all earlier work decide what the next is for: deciding before they are
        # there would make the decision depend on the intake's speed.
        waiting = [
            key
            for key, dispatch in sorted(self._view.dispatches.items())
            if dispatch.node == self._node
            and key in self._view.submissions
            and key not in self._view.receipts
            and self._serves(dispatch)
        ]
        # What joins a running batch depends on the moment anyway.
        outstanding = max(self._outstanding, OUTSTANDING if under_way else 1)
        if len(waiting) >= outstanding:
            step, _, n = waiting[0]
            return Wait(f"the intake to take in submission {n} of step {step}")
        return next_step(self._view, self._rules, nodes=self._nodes, held=held, node=self._node)

    def _say(self, wait: Wait, since: float) -> None:
        seconds = time.time() - since
        clock = time.strftime("%H:%M:%S", time.localtime(since))
        logger.warning("waiting since %s (%.0f s) for %s", clock, seconds, wait.reason)
        self._metrics.log(None, waiting_for=wait.reason, waiting_s=seconds)
