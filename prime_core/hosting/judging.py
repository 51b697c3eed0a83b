"""A verifier inside a host: what it can be asked, with every answer checked.

Used by hosts of environments and by hosts of a verifier alone. Invariant: each answer depends on
the item alone, and an async verifier leaves nothing on the loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import resource
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from prime_core.api.errors import FormatError
from prime_core.api.protocols import Verifier
from prime_core.api.types import Completion, Task
from prime_core.hosting import values, wire

OPTIONAL_MEMBERS = ("from_case", "explain", "check_gold", "second_opinion")


class Judge:
    """A verifier, its optional members, and the loop that its coroutines run on."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier: Any = verifier
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def members(self) -> list[str]:
        """The optional members that the verifier has."""
        return [name for name in OPTIONAL_MEMBERS if callable(getattr(self._verifier, name, None))]

    def score(self, task: Task, completion: Completion) -> dict[str, Any]:
        """The verifier's score."""
        verdict = self._verifier.verify(task, completion)
        if inspect.isawaitable(verdict):
            verdict = self._wait(verdict)
        return wire.score_json(verdict)

    def check_gold(self, gold: str | None) -> dict[str, Any]:
        """Whether a gold answer can be judged by; a task without one can't."""
        if gold is None:
            return {"ok": False, "type": "", "reason": "the task has no gold answer"}
        return wire.gold_report_json(self._verifier.check_gold(gold))

    # --- calls of hosts that hold the verifier alone ----------------------------------------------

    def case(self, row: Any) -> Any:
        """A row of a case file as [task, completion]; through `from_case` where there is one."""
        row = values.mapping(row, "row")
        read = self._verifier.from_case if "from_case" in self.members else default_case
        made = read(row)
        if not isinstance(made, tuple) or len(made) != 2 or not isinstance(made[1], Completion):
            raise FormatError("from_case didn't return (Task, Completion)")
        return [wire.task_json(made[0]), wire.completion_json(made[1])]

    def verify(self, item: Any) -> Any:
        """The score of [task, completion], with the CPU seconds that it took."""
        task, completion = _pair(item)
        before = _cpu_s()
        score = self.score(task, completion)
        return {"score": score, "cpu_seconds": _cpu_s() - before}

    def explain(self, item: Any) -> Any:
        """What the verifier says of [gold, text], as a mapping."""
        gold, said = item
        found = self._verifier.explain(values.text(gold, "gold"), values.text(said, "text"))
        if dataclasses.is_dataclass(found) and not isinstance(found, type):
            found = dataclasses.asdict(found)
        return values.mapping(found, "explanation")

    def second_opinion(self, item: Any) -> Any:
        """What another grader says of [task, completion]; None where it has no opinion."""
        found = self._verifier.second_opinion(*_pair(item))
        return None if found is None else values.number(found, "second opinion")

    def _wait(self, awaitable: Any) -> Any:
        """Run to the end on the host's own loop, and end what it left on it."""
        if self._loop is None:
            # One loop for the host's life, so that a verifier's HTTP client survives its calls.
            self._loop = asyncio.new_event_loop()
        # Threads of to_thread must end with the item, so that the next one doesn't see them.
        executor = ThreadPoolExecutor(thread_name_prefix="to_thread")
        self._loop.set_default_executor(executor)

        async def wait() -> Any:
            try:
                return await awaitable
            finally:
                left = asyncio.all_tasks() - {asyncio.current_task()}
                for task in left:
                    task.cancel()
                await asyncio.gather(*left, return_exceptions=True)

        try:
            return self._loop.run_until_complete(wait())
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def default_case(row: Mapping[str, Any]) -> tuple[Task, Completion]:
    """A row for verifiers without `from_case`.

    Args:
        row: `completion` (text), and optionally `id`, `gold` (text), and `task`, an object with any
            fields of a task.

    Raises:
        FormatError: they aren't that.
    """
    given = values.mapping(row.get("task", {}), "task")
    fields: dict[str, Any] = {
        "id": str(row.get("id", "case")),
        "prompt": [],
        "gold": row.get("gold"),
        "verification": {},
        "metadata": {},
        "task_type": "",
        "source": "",
    }
    said = values.text(row.get("completion"), "completion")
    return wire.read_task(fields | given), Completion(said)


def _pair(item: Any) -> tuple[Task, Completion]:
    task, completion = item
    return wire.read_task(task), wire.read_completion(completion)


def _cpu_s() -> float:
    """CPU seconds of this process, all its threads, and the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
