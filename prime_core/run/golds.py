"""Leaves out of a run the tasks whose gold answers their verifier can't judge by, and says which.

Called by preparation after the offline filters. Invariant: nothing is dropped unseen, and nothing
at all unless the config says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prime_core.api.errors import RunError

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice
    from prime_core.hosting.pool import HostPool

TASKS_A_CALL = 256
SHOWN = 20  # unusable gold answers that an error spells out

Kept = Sequence[tuple[int, str]]


async def usable_golds(pool: HostPool, environment: EnvironmentChoice, kept: Kept) -> Kept:
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
        print(f"{environment.label}: dropped for its gold answer, {line}")  # noqa: T201
    return [pair for pair in kept if pair[0] not in bad]


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
