"""The worker process: finds work, loads the policy, dispatches, produces, submits, until the end.

`run` is the main of `prime-core worker`. A dispatch is written before its first token; whatever
kills the process, the next one generates the same dispatch again, bit for bit on a CPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from prime_core.api.errors import IntegrityError
from prime_core.rollout.setup import Equipment, engine_metrics, equip
from prime_core.store.objects import ObjectExistsError

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.config.sections import RunConfig
    from prime_core.rollout.produce import Produced
    from prime_core.store.counter import Work
    from prime_core.store.records import Dispatch

logger = logging.getLogger(__name__)

WATCH_S = 0.25  # how often work in flight asks whether anybody still needs it
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
        self._load_s = 0.0

    async def work(self) -> None:
        """Serve the run until it needs no more."""
        self._with.complete_statements()
        while (found := await self._with.seeker.seek()) is not None:
            await self._serve(found)
        logger.info("every step of the run is closed: nothing left to do")

    async def _serve(self, found: Dispatch | Work) -> None:
        from prime_core.store.counter import Work

        version = found.version if isinstance(found, Work) else found.policy_version
        await self._load(version)
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
        produced = await self._produce(dispatch)
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
        self._log(dispatch, produced, size)

    async def _load(self, version: int) -> None:
        self._load_s = 0.0
        if self._policy is not None and self._policy.version == version:
            return
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
        self._load_s = time.perf_counter() - started
        self._with.drop_policies(keep={version - back for back in range(POLICIES_KEPT)})
        self._policy = policy

    async def _produce(self, dispatch: Dispatch) -> Produced | None:
        """The rows, or None where the work was cancelled because no step can take it any more."""
        from prime_core.engines.turns import WorkCancelled

        watch = asyncio.create_task(self._watch(dispatch))
        try:
            return await self._with.producer.produce(dispatch)
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
                for group_id in self._with.producer.current:
                    self._with.engine.cancel(group_id)

    def _log(self, dispatch: Dispatch, produced: Produced, size: int) -> None:
        rows, seconds = produced.rows, produced.generate_s
        scores = [row.score for row in rows if row.score is not None]
        rewards = [row.reward for row in rows if row.reward is not None]
        assert self._policy is not None
        computed = produced.prompt_tokens + produced.completion_tokens
        self._with.metrics.log(
            dispatch.step,
            submission=dispatch.n,
            version=dispatch.policy_version,
            groups=dispatch.groups,
            rollouts=len(rows),
            prompts=dispatch.groups,
            prompt_tokens=produced.prompt_tokens,
            completion_tokens=produced.completion_tokens,
            tokens_per_s=produced.completion_tokens / max(seconds, 1e-9),
            generate_s=seconds,
            score_tail_s=produced.score_tail_s,
            load_policy_s=self._load_s,
            wait_s=self._with.seeker.waited_s,
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
