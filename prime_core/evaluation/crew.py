"""Who does the units of an order: this process, or the workers of a Ray cluster.

Chosen by `running`. Invariant: each unit's results are delivered, whoever was lost meanwhile, and
nobody is given more units than the order's depth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from prime_core.evaluation.orders import Order
from prime_core.evaluation.units import Unit
from prime_core.evaluation.work import open_work

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.hosting.pool import HostPool

Deliver: TypeAlias = Callable[[int, list[dict[str, Any]]], None]


class Crew(Protocol):
    """Does an order's units, in any order."""

    async def run(self, order: Order, units: Iterator[Unit], deliver: Deliver) -> None:
        """Do all units; `deliver` gets each one's number and results, one call at a time.

        Raises:
            PrimeError: the work can't be begun, or can't go on.
        """
        ...


class LocalCrew:
    """This process, with the hosts that the order's hosting section asks for."""

    def __init__(self, *, pool: HostPool | None = None, policy: PolicyFiles | None = None) -> None:
        self._pool, self._policy = pool, policy

    async def run(self, order: Order, units: Iterator[Unit], deliver: Deliver) -> None:
        """See `Crew`."""
        first = next(units, None)
        if first is None:
            return
        async with AsyncExitStack() as stack:
            work = await open_work(order, stack, pool=self._pool, policy=self._policy)
            doing: dict[asyncio.Task[list[dict[str, Any]]], int] = {}
            try:
                unit: Unit | None = first
                while unit is not None or doing:
                    while unit is not None and len(doing) < order.depth:
                        doing[asyncio.create_task(work.do(unit.items))] = unit.number
                        unit = next(units, None)
                    done, _ = await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        deliver(doing.pop(task), task.result())
            finally:
                for task in doing:
                    task.cancel()
                await asyncio.gather(*doing, return_exceptions=True)
