"""Hands hidden states to the commitments of a batch's requests, on a thread beside the model.

Used by `decoding`; the engine owns the thread. The model's thread only collects one tensor a token;
rows go over in blocks of one proof's interval, in order, so that what is built doesn't depend on
timing.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING

import torch

from prime_core.toploc import INTERVAL

if TYPE_CHECKING:
    from prime_core.api import Commitment


class Committer:
    """Feeds the commitments of one batch; without any it costs nothing."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._work: list[Future[None]] = []
        self._sinks: list[Commitment | None] = []
        self._counts: list[int] = []
        self._hidden_BD: list[torch.Tensor] = []

    def collect(
        self, sinks: Sequence[Commitment | None], hidden_BD: torch.Tensor, ended: Sequence[bool]
    ) -> None:
        """Take the hidden states of one token of every row.

        Args:
            sinks: where each row's states go; None for a row that wants no commitment.
            hidden_BD: kept until the block goes over; it isn't written to again.
            ended: rows that no longer count; one that ended once must stay so.
        """
        if all(sink is None for sink in sinks):
            return
        if len(self._hidden_BD) == INTERVAL or not _same(self._sinks, sinks):
            self.flush()
        if not self._hidden_BD:
            self._sinks, self._counts = list(sinks), [0] * len(sinks)
        self._hidden_BD.append(hidden_BD)
        for row, over in enumerate(ended):
            self._counts[row] += not over

    def flush(self) -> None:
        """Send what was collected on its way."""
        if self._hidden_BD:
            work = self._executor.submit(_feed, self._sinks, self._counts, self._hidden_BD)
            self._work.append(work)
            self._hidden_BD = []

    def finish(self) -> None:
        """Wait until every commitment has its rows.

        Raises:
            EngineError: a commitment refuses them, as they aren't finite.
        """
        self.flush()
        for work in self._work:
            work.result()
        self._work.clear()


def _same(left: Sequence[Commitment | None], right: Sequence[Commitment | None]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _feed(
    sinks: Sequence[Commitment | None], counts: Sequence[int], hidden_BD: Sequence[torch.Tensor]
) -> None:
    block_BTD = torch.stack(list(hidden_BD), dim=1).to("cpu", torch.bfloat16)
    for sink, count, rows_TD in zip(sinks, counts, block_BTD, strict=True):
        if sink is not None and count:
            sink.add(rows_TD[:count])
