"""Makes the rows of one submission: plan, generate, score while others are still generated.

Called by the worker for each dispatch. What the rows hold depends on the dispatch alone, never on
timing, so that a restarted worker repeats them bit for bit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prime_core.assignment import AssignmentKey, EnvironmentShare, assign, beacon
from prime_core.engines.planning import PlannedGroup, Planner
from prime_core.engines.turns import Player, Rollout
from prime_core.rollout.scoring import RowSource, finish_group
from prime_core.store.schema import RolloutRow

if TYPE_CHECKING:
    from prime_core.hosting.pool import HostPool
    from prime_core.store.records import Dispatch
    from prime_core.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Produced:
    """The rows of a submission, in (k, sample) order, and how long they took.

    Attributes:
        prompt_tokens: each group's prompt counted once, as often as it's computed.
        score_tail_s: seconds after the last token until the last score.
    """

    rows: list[RolloutRow]
    prompt_tokens: int
    completion_tokens: int
    generate_s: float
    score_tail_s: float


class ScoreSpan:
    """One span of the trace from the first group that is being scored to the last."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._open = 0
        self._stack = ExitStack()

    @contextmanager
    def group(self, step: int) -> Iterator[None]:
        """While one group is scored."""
        if self._open == 0:
            self._stack.enter_context(self._trace.span("score", lane="score", step=step))
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if self._open == 0:
                self._stack.close()


@dataclass(slots=True)
class Producer:
    """What a submission depends on besides its dispatch.

    Attributes:
        shares: the run's environments, in the config's order.
        pools: by environment label.
    """

    shares: Sequence[EnvironmentShare]
    planner: Planner
    player: Player
    pools: Mapping[str, HostPool]
    trace: Trace
    _span: ScoreSpan = field(init=False)

    def __post_init__(self) -> None:
        self._span = ScoreSpan(self.trace)

    async def produce(
        self,
        dispatch: Dispatch,
        *,
        lane: str = "main",
        freed: Callable[[int], None] = lambda count: None,
    ) -> Produced:
        """Generate and score every group of a dispatch; several may be produced at a time.

        Args:
            lane: of its span in the trace.
            freed: told of places in the engine's batch, see `Player.play`; at the beginning every
                rollout of the dispatch counts as one that will take its place.

        Raises:
            WorkCancelled: `InferenceEngine.cancel` was called for one of its groups.
            PrimeError: the engine failed, or an environment can't be hosted any more.
        """
        key = AssignmentKey(
            run_id=dispatch.run_id,
            beacon=beacon(dispatch.run_id, bytes.fromhex(dispatch.policy_digest)),
            node=dispatch.node,
            step=dispatch.step,
            submission=dispatch.n,
        )
        assigned = assign(key, self.shares, dispatch.groups, dispatch.group_size)
        groups = await self.planner.plan(key, assigned)
        return await self._play(dispatch, groups, lane, freed)

    async def _play(
        self,
        dispatch: Dispatch,
        groups: Sequence[PlannedGroup],
        lane: str,
        freed: Callable[[int], None],
    ) -> Produced:
        source = RowSource(dispatch, self.player.max_tokens, self.player.temperature)
        rollouts = {group.group_id: group.rollouts() for group in groups}
        missing = {group.group_id: len(group.seeds) for group in groups}
        by_id = {group.group_id: group for group in groups}
        scoring: dict[str, asyncio.Task[list[RolloutRow]]] = {}

        def finished(rollout: Rollout) -> None:
            missing[rollout.group_id] -= 1
            if missing[rollout.group_id] == 0:
                scoring[rollout.group_id] = asyncio.create_task(
                    self._finish(by_id[rollout.group_id], rollouts[rollout.group_id], source)
                )

        running = []
        for rollout in (one for group in rollouts.values() for one in group):
            if rollout.finish_reason:
                finished(rollout)
            else:
                running.append(rollout)
        freed(len(groups) * dispatch.group_size - len(running))
        started = time.perf_counter()
        try:
            step, version = dispatch.step, dispatch.policy_version
            with self.trace.span("generate", lane=lane, step=step, version=version):
                await self.player.play(running, finished, freed)
            generated = time.perf_counter()
            rows = [row for group in groups for row in await scoring[group.group_id]]
        finally:
            for task in scoring.values():
                task.cancel()
            await asyncio.gather(*scoring.values(), return_exceptions=True)
        return Produced(
            rows=rows,
            prompt_tokens=sum(len(group.prompt_tokens) for group in groups),
            completion_tokens=sum(row.length for row in rows),
            generate_s=generated - started,
            score_tail_s=time.perf_counter() - generated,
        )

    async def _finish(
        self, group: PlannedGroup, rollouts: Sequence[Rollout], source: RowSource
    ) -> list[RolloutRow]:
        proofs = [b""] * len(rollouts)
        if self.player.commit:
            # the polynomials cost time that the event loop has better use for
            proofs = await asyncio.to_thread(lambda: [rollout.proofs() for rollout in rollouts])
        with self._span.group(source.dispatch.step):
            pool = self.pools[group.environment]
            return await finish_group(pool, group, rollouts, source, proofs)
