"""Which submissions a validator should judge now, and in which order.

Pure but for the time at which it saw each file first. Several validators share the work: each file
has a rank among them, and whoever has a higher one waits before it takes the file over.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from prime_core.store.counter import RunView, StepRules
from prime_core.store.records import Key


def rank(address: str, validators: Collection[str], key: Key) -> int:
    """The place of a validator among those who may judge a file: 0 is the one who does.

    Highest-random-weight hashing: the ranks of one file don't depend on who else judges what.
    """

    def weight(other: str) -> bytes:
        return hashlib.sha256(f"{other}|{key[0]}|{key[1]}|{key[2]}".encode()).digest()

    return sorted(validators, key=weight).index(address)


@dataclass
class Pending:
    """The files of a run that wait for a verdict, as one validator sees them.

    Attributes:
        rules: of the run.
        address: this validator's.
        validators: all whose verdicts count.
        takeover_s: seconds that a file waits for each validator of a lower rank.
        statement_wait_s: seconds that it may wait for its signed statement.
        clock: replaced in tests.
    """

    rules: StepRules
    address: str
    validators: Collection[str]
    takeover_s: float
    statement_wait_s: float
    clock: Callable[[], float] = time.monotonic
    _seen: dict[Key, float] = field(default_factory=dict)
    _free: dict[Key, float] = field(default_factory=dict)  # since when nothing is before it

    def files(
        self,
        view: RunView,
        judged: Callable[[Key], bool],
        stated: Callable[[Key], bool],
        loaded: int | None,
        stuck: Callable[[Key], bool] = lambda key: False,
    ) -> list[Key]:
        """What may be judged now: oldest step first, in it the loaded version's files.

        Args:
            judged: whether a file has a verdict.
            stated: whether its signed statement is there.
            loaded: the policy version that costs no loading.
            stuck: whether a file was put off so often that others needn't wait for it.
        """
        now = self.clock()
        waiting = {key for key in view.submissions if self._waits(view, key, judged)}
        # A node's files of a step are judged in their order: how a file is looked at depends on
        # what became of those before it, and the node mustn't choose which are judged first.
        before = {
            key
            for key in view.submissions
            if (key in waiting and not stuck(key))
            or (key not in view.dispatches and key not in view.receipts)
        }
        free = {key for key in waiting if _is_free(view, key, before)}
        for known, keys in ((self._seen, waiting), (self._free, free)):
            for key in keys:
                known.setdefault(key, now)
            for key in [key for key in known if key not in keys]:
                del known[key]
        ready = [key for key in free if self._is_ready(key, stated, now)]

        def place(key: Key) -> tuple[int, bool, int, int, str]:
            version = view.dispatches[key].policy_version
            return (key[0], version != loaded, version, key[2], key[1])

        return sorted(ready, key=place)

    def _waits(self, view: RunView, key: Key, judged: Callable[[Key], bool]) -> bool:
        dispatch = view.dispatches.get(key)
        if dispatch is None or key in view.receipts or judged(key):
            return False  # nobody announced it (the intake refuses it), or it has its fate
        last = self.rules.last_step(key[0], dispatch.policy_version)
        return min(last, self.rules.steps - 1) >= view.first_open  # else it is late

    def _is_ready(self, key: Key, stated: Callable[[Key], bool], now: float) -> bool:
        if not stated(key) and now - self._seen[key] < self.statement_wait_s:
            return False
        wait = self.takeover_s * rank(self.address, self.validators, key)
        return now - self._free[key] >= wait


def _is_free(view: RunView, key: Key, before: Collection[Key]) -> bool:
    """Whether all its predecessors have come and are through; else it waits while it may."""
    step, node, n = key
    earlier = [(step, node, m) for m in range(n)]
    return all(one in view.submissions and one not in before for one in earlier)
