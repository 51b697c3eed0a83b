"""Begins an order in this process and does its units: the same code on one machine and on Ray.

Used by the crews. Invariant: what a unit gives depends on the order and the unit alone (endpoints
apart, which promise nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol

from prime_core.api.errors import RunError
from prime_core.config.sections import EnvironmentChoice, HostingSection, RunConfig
from prime_core.evaluation.judged import Judged
from prime_core.evaluation.opening import open_hosts, open_sampler
from prime_core.evaluation.orders import Order, identity
from prime_core.evaluation.sampling import Sampler, Sampling
from prime_core.hosting import wire

if TYPE_CHECKING:
    from prime_core.api import Instruction, PolicyFiles
    from prime_core.hosting.pool import HostPool

RETRY = "retry"  # key of a result that isn't one: why the item should be tried another time


class Work(Protocol):
    """An order that was begun."""

    async def do(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """The results of a unit's items, in order: `Judged` as JSON, or {"retry": why}."""
        ...


class ScoreWork:
    """Scores given completions.

    An item is [row, id of the row, task index, task id, sample, completion].
    """

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool

    async def do(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """See `Work`."""
        said = [wire.read_completion(item[5]) for item in items]
        scores = await self._pool.score(
            [(item[2], completion) for item, completion in zip(items, said, strict=True)]
        )
        return [
            Judged(
                index=item[2],
                task=item[3],
                sample=item[4],
                score=score,
                finish_reason=completion.finish_reason,
                tokens=completion.token_count,
                id=item[1],
                row=item[0],
            ).to_json()
            for item, completion, score in zip(items, said, scores, strict=True)
        ]


class SampleWork:
    """Samples completions and scores them; an item is [task index, sample]."""

    def __init__(
        self,
        pool: HostPool,
        sampler: Sampler,
        sampling: Sampling,
        instruction: Instruction | None,
    ) -> None:
        self._pool, self._sampler = pool, sampler
        self._sampling, self._instruction = sampling, instruction

    async def do(self, items: Sequence[Any]) -> list[dict[str, Any]]:
        """See `Work`."""
        found = await self._sampler.play(
            self._pool, [(index, sample) for index, sample in items], self._sampling,
            self._instruction,
        )  # fmt: skip
        return [{RETRY: one} if isinstance(one, str) else one.to_json() for one in found]


async def open_work(
    order: Order,
    stack: AsyncExitStack,
    *,
    pool: HostPool | None = None,
    policy: PolicyFiles | None = None,
) -> Work:
    """Begin an order; `stack` ends it.

    Args:
        pool, policy: what the caller has open already.

    Raises:
        RunError: the environment or the model here isn't the driver's.
        PrimeError: something can't be opened.
    """
    if pool is None:
        pool = await open_hosts(
            EnvironmentChoice.model_validate(order.environment),
            HostingSection.model_validate(order.hosting),
            order.block,
            stack,
            run_dir=None,
        )
        _check_same(order, identity(pool.description))
    if order.kind == "score":
        return ScoreWork(pool)
    assert order.sampling is not None
    config = RunConfig.model_validate(order.config)
    if policy is None and order.model_digest:
        policy = _policy(config, order.model_digest)
    sampler = await open_sampler(config, policy, stack, run_dir=None)
    instruction = wire.read_instruction(order.instruction)
    return SampleWork(pool, sampler, Sampling(**order.sampling), instruction)


def _check_same(order: Order, here: dict[str, Any]) -> None:
    differing = [name for name, value in order.identity.items() if here.get(name) != value]
    if differing:
        name = differing[0]
        raise RunError(
            f"the environment isn't the same here: {name} is {here.get(name)!r}, "
            f"where the command was given it is {order.identity[name]!r}",
            where=f"environment {order.environment['use']}",
            fix="install the same versions and data on every machine",
        )


def _policy(config: RunConfig, digest: str) -> PolicyFiles:
    from prime_core.evaluation.policies import policy_of_model

    policy, found = policy_of_model(config.model)
    if found != digest:
        raise RunError(
            f"the model's digest is {found[:16]}, where the command was given it is {digest[:16]}",
            where=config.model.path,
            fix="put the same files at this path on every machine",
        )
    return policy
