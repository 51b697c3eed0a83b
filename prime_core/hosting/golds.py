"""Leaves out the tasks whose gold answers their verifier can't judge by, and says which.

Called by a run's preparation, after the offline filters, and by evaluation. Invariant: nothing is
dropped unseen, and nothing at all unless the config says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prime_core.api.errors import RunError

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice
    from prime_core.hosting.pool import HostPool

TASKS_A_CALL = 256
SHOWN = 20  # unusable gold answers that an error spells out

Kept = Sequence[tuple[int, str]]


def to_standard_output(line: str) -> None:
    """Where preparation says what it drops."""
    print(line)  # noqa: T201


def to_standard_error(line: str) -> None:
    """Where a command says it whose standard output is its result."""
    print(line, file=sys.stderr)  # noqa: T201


async def usable_golds(
    pool: HostPool,
    environment: EnvironmentChoice,
    kept: Kept,
    say: Callable[[str], None] = to_standard_output,
) -> Kept:
    """The (index, task id) pairs whose golds can be judged by; all where the verifier can't tell.

    Raises:
        RunError: some can't and the environment's `bad_golds` is refuse; names up to 20.
        HostError: the verifier's `check_gold` failed.
    """
    if not pool.description.checks_golds:
        return kept
    bad: dict[int, str] = {}
    for first in range(0, len(kept), TASKS_A_CALL):
        some = [index for index, _ in kept[first : first + TASKS_A_CALL]]
        reports = await pool.check_golds(some)
        bad |= {i: report.reason for i, report in zip(some, reports, strict=True) if not report.ok}
    lines = [f"{task_id}: {bad[index]}" for index, task_id in kept if index in bad]
    if lines and environment.bad_golds == "refuse":
        raise _refusal(environment, lines)
    for line in lines:
        say(f"{environment.label}: dropped for its gold answer, {line}")
    return [pair for pair in kept if pair[0] not in bad]


async def held_out(
    pool: HostPool,
    environment: EnvironmentChoice,
    indices: Sequence[int],
    say: Callable[[str], None] = to_standard_output,
) -> list[int]:
    """Those of the indices whose tasks can be evaluated on.

    Raises:
        RunError: as `usable_golds`, and where none is left.
        HostError: the environment or the verifier's `check_gold` failed.
    """
    named: list[tuple[int, str]] = []
    for first in range(0, len(indices), TASKS_A_CALL):
        some = indices[first : first + TASKS_A_CALL]
        tasks = await pool.tasks(some)
        named += [(index, task.id) for index, task in zip(some, tasks, strict=True)]
    kept = [index for index, _ in await usable_golds(pool, environment, named, say)]
    if not kept:
        raise RunError(
            f"no held-out task of environment {environment.label} is left",
            where=f"environments, {environment.label}",
            fix="repair its gold answers, or evaluate on another environment",
        )
    return kept


def _refusal(environment: EnvironmentChoice, lines: Sequence[str]) -> RunError:
    shown = [f"\n  {line}" for line in lines[:SHOWN]]
    if len(lines) > SHOWN:
        shown.append(f"\n  and {len(lines) - SHOWN} more")
    count = f"{len(lines)} gold answer{'s' if len(lines) != 1 else ''}"
    return RunError(
        f"the verifier can't judge by {count}:{''.join(shown)}",
        where=f"environments, {environment.label}",
        fix='repair them, or leave their tasks out with bad_golds = "drop"',
    )
