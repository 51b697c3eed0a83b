"""Environments and verifiers in jailed hosts, as benches score on them.

The lab opens them. Invariant: every process that scores is started with the limits of the check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from prime_core.api import Completion, Score, Task
from prime_core.api.datasets import task_json
from prime_core.check import synthetic
from prime_core.check.bench import Bench, Scorer
from prime_core.check.configured import environment_choice, plugin_choice
from prime_core.check.limits import Limits
from prime_core.check.listing import spread
from prime_core.check.measures import Listing, TaskView, listed_task
from prime_core.check.subject import Subject
from prime_core.config.sections import HostingSection
from prime_core.hosting.pool import HostPool
from prime_core.hosting.verifier_pool import VerifierPool


class EnvironmentScorer:
    """An environment in jailed hosts."""

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """By the environment's verifier."""
        return await self._pool.score(items)

    async def listing(self, most: int, sample: Sequence[int]) -> Listing | None:
        """As the hosts list and render them.

        Raises:
            HostError: a task can't be sent or rendered there.
        """
        count = self._pool.description.task_count
        lines = [task_json(task) + b"\n" for task in await self._pool.tasks(spread(count, most))]
        tasks = tuple(listed_task(line) for line in lines)
        asked = [index for index in sample if index < count]
        prompts = await self._pool.render([(index, None) for index in asked])
        views = tuple(
            TaskView(
                index=index,
                id="",
                prompt="\n\n".join(message.content for message in prompt),
                roles=tuple(message.role for message in prompt),
            )
            for index, prompt in zip(asked, prompts, strict=True)
        )
        return Listing(
            count=count,
            digest=hashlib.sha256(b"".join(lines)).hexdigest(),
            info=self._pool.description.info,
            tasks=tasks,
            sample=views,
        )

    async def close(self) -> None:
        """End its processes."""
        await self._pool.close()


class VerifierScorer:
    """A verifier in jailed hosts, with tasks that the check made."""

    def __init__(self, pool: VerifierPool, tasks: Sequence[Task]) -> None:
        self._pool = pool
        self._tasks = tasks

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """By the verifier; values outside [0, 1] are errors, as in an environment's host."""
        found = await self._pool.verify([(self._tasks[index], said) for index, said in items])
        return [_in_range(each.score) for each in found]

    async def listing(self, most: int, sample: Sequence[int]) -> Listing | None:
        """None: the tasks are the check's own."""
        return None

    async def close(self) -> None:
        """End its processes."""
        await self._pool.close()


def _in_range(score: Score) -> Score:
    if score.value is None or 0.0 <= score.value <= 1.0:
        return score
    detail = f"the score {score.value} is outside [0, 1]"
    return Score(None, "error", evidence={"kind": "value", "detail": detail})


async def open_bench(
    subject: Subject,
    limits: Limits,
    *,
    python: Path,
    cache_dir: Path,
    log_dir: Path,
    block: Sequence[str],
) -> Bench:
    """Start the first host of an environment, or of a verifier alone.

    Raises:
        HostError: it can't be started.
    """
    hosting = HostingSection(
        time_limit_s=limits.item_s,
        start_limit_s=limits.start_s,
        memory_mb=limits.memory_mb,
        batch=16,
    )
    made: Scorer
    if subject.kind == "verifier":
        assert subject.case is not None
        verifiers = await VerifierPool.open(
            plugin_choice(subject), hosting, cache_dir=cache_dir, python=python, log_dir=log_dir
        )
        made = VerifierScorer(verifiers, synthetic.tasks(subject.case))
    else:
        environment = environment_choice(subject).model_copy(update={"python": python})
        made = EnvironmentScorer(
            await HostPool.open(
                environment, None, hosting,
                cache_dir=cache_dir, run_dir=None, block=block, log_dir=log_dir,
            )
        )  # fmt: skip
    return Bench(made)
