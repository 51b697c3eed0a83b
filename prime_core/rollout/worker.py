"""The worker process: finds work, loads the policy, dispatches, produces, submits, until the end.

`run` is the main of `prime-core worker`. A dispatch is written before its first token; whatever
kills the process, the next one generates the same dispatch again, bit for bit on a CPU. Where the
engine's streams share a batch, the next submission fills the places that the last long completions
of the one before leave free, as long as it has the version that is loaded.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from prime_core.api.errors import IntegrityError
from prime_core.assignment import group_id
from prime_core.rollout.setup import Equipment, engine_metrics, equip, window_of
from prime_core.rollout.under_way import Submission, UnderWay
from prime_core.store.counter import Wait, Work
from prime_core.store.objects import ObjectExistsError

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.config.sections import RunConfig
    from prime_core.rollout.produce import Produced
    from prime_core.store.records import Dispatch

logger = logging.getLogger(__name__)

WATCH_S = 0.25  # how often work in flight asks whether anybody still needs it
LOOK_S = 0.1  # how often a batch with free places asks whether there is more work
POLICIES_KEPT = 2


def run(
    config: RunConfig,
    node: str,
    *,
    worker: type[Worker] | None = None,
    equipment: type[Equipment] | None = None,
) -> None:
    """Work until the run needs no more work, or until SIGTERM; blocks.

    Args:
        worker, equipment: subclasses that work otherwise than an honest node.

    Raises:
        PrimeError: the run isn't prepared, or the engine or an environment can't work.
    """
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    asyncio.run(_run(config, node, worker or Worker, equipment))


async def _run(
    config: RunConfig, node: str, worker: type[Worker], equipment: type[Equipment] | None
) -> None:
    async with AsyncExitStack() as stack:
        opened = await equip(config, node, stack, equipment)
        working = asyncio.create_task(worker(opened).work())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, working.cancel)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await working
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


class Worker:
    """One worker's loop over what `equip` made."""

    def __init__(self, equipment: Equipment) -> None:
        self._with = equipment
        self._policy: PolicyFiles | None = None
        engine = equipment.engine
        self._under_way = UnderWay(engine.capabilities.continuous_batch, partial(window_of, engine))

    async def work(self) -> None:
        """Serve the run until it needs no more."""
        self._with.complete_statements()
        try:
            while (found := await self._next()) is not None:
                await self._begin(found)
        finally:
            await self._under_way.abandon()
        logger.info("every step of the run is closed: nothing left to do")

    async def _next(self) -> Dispatch | Work | None:
        """What to begin now; submissions that end meanwhile are announced.

        While there are some under way, only what their policy version generates: weights are loaded
        between batches.
        """
        seeker, under_way = self._with.seeker, self._under_way
        while under_way:
            look_s = None
            if under_way.has_room:
                found = seeker.look(under_way.keys)
                if not isinstance(found, Wait) and self._is_loaded(found):
                    return found
                look_s = LOOK_S
            await under_way.change(look_s)
            self._announce()
        return await seeker.seek()

    async def _serve(self, found: Dispatch | Work) -> None:
        """Begin one submission and see it to its end."""
        await self._begin(found)
        while self._under_way:
            await self._under_way.change()
            self._announce()

    async def _begin(self, found: Dispatch | Work) -> None:
        version = _version(found)
        load_s = 0.0 if self._is_loaded(found) else await self._load(version)
        assert self._policy is not None
        if isinstance(found, Work):
            dispatch = self._with.dispatch(found, self._policy.digest)
        else:
            dispatch = found
            logger.info("step %d, submission %d: generating it again", found.step, found.n)
        if dispatch.policy_digest != self._policy.digest.hex():
            raise IntegrityError(
                f"version {version} isn't the one that submission {dispatch.n} was dispatched with",
                where=f"step {dispatch.step}",
                fix="use the store and the run directory of one run",
            )
        waited_s = 0.0 if self._under_way else self._with.seeker.waited_s
        self._under_way.begin(dispatch, self._produce, load_s=load_s, waited_s=waited_s)

    def _announce(self) -> None:
        """Submit what has ended, in the order of dispatch; raises what one has failed with.

        What is complete behind a failure is submitted too: after a restart it isn't made again.
        """
        while (ended := self._under_way.next_ended()) is not None:
            self._submit(ended, ended.producing.result())
        if (failed := self._under_way.failed) is not None:
            failed.producing.result()

    def _submit(self, submission: Submission, produced: Produced | None) -> None:
        dispatch = submission.dispatch
        if produced is None:
            logger.info("step %d, submission %d: nobody needs it", dispatch.step, dispatch.n)
            self._with.metrics.log(dispatch.step, submission=dispatch.n, cancelled=1)
            return
        try:
            size = self._with.submit(dispatch, produced.rows)
        except ObjectExistsError:
            # Not ours: what we had written, we wouldn't have generated again.
            logger.exception("somebody else wrote submission %d of this node", dispatch.n)
            self._with.metrics.log(dispatch.step, submission=dispatch.n, foreign_submissions=1)
            return
        self._log(submission, produced, size)

    def _is_loaded(self, found: Dispatch | Work) -> bool:
        return self._policy is not None and self._policy.version == _version(found)

    async def _load(self, version: int) -> float:
        """Load a version, between batches; returns the seconds that it took."""
        assert not self._under_way, "weights are loaded between batches"
        started = time.perf_counter()
        with self._with.trace.span("load_policy", version=version):
            policy = await asyncio.to_thread(self._with.fetch, version)
            digest = await asyncio.to_thread(self._with.engine.load, policy)
        if digest != policy.digest:
            raise IntegrityError(
                f"the engine loaded another policy than version {version}",
                where=f"engine {self._with.config.engine.use}",
                fix="report it to the engine's authors: load() returns the digest of what it read",
            )
        self._with.drop_policies(keep={version - back for back in range(POLICIES_KEPT)})
        self._policy = policy
        return time.perf_counter() - started

    async def _produce(self, submission: Submission) -> Produced | None:
        """The rows, or None where the work was cancelled because no step can take it any more."""
        from prime_core.engines.turns import WorkCancelled

        watch = asyncio.create_task(self._watch(submission.dispatch))
        try:
            return await self._with.producer.produce(
                submission.dispatch,
                lane=submission.lane,
                freed=partial(self._under_way.freed, submission),
            )
        except WorkCancelled:
            return None
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    async def _watch(self, dispatch: Dispatch) -> None:
        """Cancel the work in flight once no open step may take it."""
        while True:
            await asyncio.sleep(WATCH_S)
            if not self._with.seeker.is_useful(dispatch):
                # Again and again: between two turns there is no stream that could be cancelled.
                for k in range(dispatch.groups):
                    name = group_id(dispatch.step, dispatch.node, dispatch.n, k)
                    self._with.engine.cancel(name)

    def _log(self, submission: Submission, produced: Produced, size: int) -> None:
        dispatch, rows, seconds = submission.dispatch, produced.rows, produced.generate_s
        scores = [row.score for row in rows if row.score is not None]
        rewards = [row.reward for row in rows if row.reward is not None]
        assert self._policy is not None
        computed = produced.prompt_tokens + produced.completion_tokens
        self._with.metrics.log(
            dispatch.step,
            submission=dispatch.n,
            beside=submission.beside,
            version=dispatch.policy_version,
            groups=dispatch.groups,
            rollouts=len(rows),
            prompts=dispatch.groups,
            prompt_tokens=produced.prompt_tokens,
            completion_tokens=produced.completion_tokens,
            tokens_per_s=produced.completion_tokens / max(seconds, 1e-9),
            generate_s=seconds,
            score_tail_s=produced.score_tail_s,
            load_policy_s=submission.load_s,
            wait_s=submission.waited_s,
            # Two operations a parameter and token: one multiplication, one addition.
            inference_flops=2 * self._with.parameters(self._policy) * computed,
            scored=len(scores),
            unscored=len(rows) - len(scores),
            truncated=sum(row.finish_reason == "length" for row in rows),
            score_mean=sum(scores) / len(scores) if scores else None,
            reward_mean=sum(rewards) / len(rewards) if rewards else None,
            bytes=size,
            **self._with.host_metrics(),
            **engine_metrics(self._with.engine),
        )


def _version(found: Dispatch | Work) -> int:
    return found.version if isinstance(found, Work) else found.policy_version
