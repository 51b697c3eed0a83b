"""From `closed.json` to groups with advantages: the trainer's only way in.

`train.py` calls `wait_closed` and `load_groups`. Only bytes with the hash that the intake wrote
down are read, by the strict reader; advantages are computed here from the rewards.
"""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prime_core.api.errors import IntegrityError
from prime_core.api.protocols import AdvantageFunction
from prime_core.config.sections import RunConfig
from prime_core.store.layout import closed_path
from prime_core.store.objects import ObjectStore
from prime_core.store.records import Closed, ClosedGroup
from prime_core.store.schema import RolloutRow
from prime_core.store.submission import Submission, read_submission
from prime_core.store.view import read_closed
from prime_core.trainer.packing import Rollout

logger = logging.getLogger(__name__)

POLL_S = 0.02  # a fresh file is noticed within this
REMOTE_POLL_S = 1.0
TELL_AFTER_S = 1.0  # shorter waits are the ordinary rhythm of an asynchronous run
SAY_EVERY_S = 30.0


@dataclass(frozen=True, slots=True)
class Group:
    """One group of the batch: all its rows, and the rollouts of those that carry a reward."""

    id: str
    rows: tuple[RolloutRow, ...]
    rollouts: tuple[Rollout, ...]


def wait_closed(
    store: ObjectStore,
    step: int,
    groups: int,
    tell: Callable[[str], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Closed:
    """Wait until the intake closes a step; says for whom and since when.

    Args:
        groups: that the step needs, for the message.
        tell: told what is waited for once that has taken a second, and "" when it's over.
        sleep: replaced in tests.

    Raises:
        FormatError: the record can't be parsed, or is of another step.
    """
    path = closed_path(step)
    reason = f"the intake to write {path}: it needs {groups} accepted groups with signal"
    since, told, said = time.time(), False, 0.0
    pause = POLL_S if store.local_path(path) is not None else REMOTE_POLL_S
    while not store.exists(path):
        sleep(pause)
        waited = time.time() - since
        if waited > TELL_AFTER_S and not told:
            told = True
            tell(reason)
        if waited - said > SAY_EVERY_S:
            said = waited
            clock = time.strftime("%H:%M:%S", time.localtime(since))
            logger.warning("step %d waits since %s (%.0f s) for %s", step, clock, waited, reason)
    if told:
        tell("")
    return read_closed(store, step)


def load_groups(
    store: ObjectStore, closed: Closed, config: RunConfig, advantage: AdvantageFunction
) -> list[Group]:
    """The batch in closed order, advantages set.

    Raises:
        IntegrityError: another run's record, bytes with another hash, a group that isn't there,
            a lag above `async.max`, or another temperature than the run's.
        FormatError: a submission that the strict reader refuses.
    """
    where = closed_path(closed.step)
    if closed.run_id != config.run.id:
        raise IntegrityError(
            f"the batch is of run {closed.run_id}, this is {config.run.id}",
            where=where,
            fix="use a fresh run directory",
        )
    files: dict[str, dict[str, tuple[RolloutRow, ...]]] = {}
    batch = []
    for entry in closed.groups:
        if entry.path not in files:
            files[entry.path] = _read(store, entry).groups()
        rows = files[entry.path].get(entry.group_id, ())
        if not rows:
            raise IntegrityError(
                f"group {entry.group_id} isn't in {entry.path}",
                where=where,
                fix="the intake and the store disagree; resume from a copy of the run",
            )
        _check_rows(rows, closed.step, config)
        batch.append(Group(entry.group_id, rows, _rollouts(rows, advantage)))
    return batch


def _read(store: ObjectStore, entry: ClosedGroup) -> Submission:
    data = store.get(entry.path)
    found = hashlib.sha256(data).hexdigest()
    if found != entry.sha256:
        raise IntegrityError(
            f"SHA-256 is {found}, the step closed on {entry.sha256}",
            where=entry.path,
            fix="restore the file that the intake accepted; its receipt names the hash",
        )
    return read_submission(data)


def _check_rows(rows: Sequence[RolloutRow], step: int, config: RunConfig) -> None:
    lag = step - rows[0].policy_version
    if not 0 <= lag <= config.async_.max_lag:
        raise IntegrityError(
            f"group {rows[0].group_id} lags by {lag}, async.max is {config.async_.max_lag}",
            where=closed_path(step),
            fix="the intake closed on a group that may not train; report it",
        )
    expected = float(np.float32(config.engine.temperature))
    for row in rows:
        if row.temperature != expected:
            raise IntegrityError(
                f"sampled at temperature {row.temperature:g}, the run's is {expected:g}",
                where=f"group {row.group_id}, sample {row.sample}",
                fix="log-probabilities of different temperatures can't be compared; "
                "restart the workers with the run's config",
            )


def _rollouts(rows: Sequence[RolloutRow], advantage: AdvantageFunction) -> tuple[Rollout, ...]:
    """Rollouts of the rows that carry a reward: unscored ones leave the baseline too."""
    scored = [row for row in rows if row.reward is not None and any(row.completion_mask)]
    rewards = [float(row.reward) for row in scored if row.reward is not None]
    if not scored:
        return ()
    advantages = advantage.advantages(rewards)
    return tuple(_rollout(row, value) for row, value in zip(scored, advantages, strict=True))


def _rollout(row: RolloutRow, advantage: float) -> Rollout:
    prompt = len(row.prompt_tokens)
    return Rollout(
        token_ids=np.asarray([*row.prompt_tokens, *row.completion_tokens], np.int64),
        trained=np.asarray([False] * prompt + row.completion_mask, bool),
        engine_logprobs=np.asarray([0.0] * prompt + row.completion_logprobs, np.float32),
        advantage=advantage,
        version=row.policy_version,
    )


def describe(groups: Sequence[Group], step: int) -> dict[str, float]:
    """Metrics of the batch itself: rewards by environment and part, lengths, lags."""
    means: dict[str, list[float]] = defaultdict(list)
    lags: Counter[int] = Counter()
    for row in (row for group in groups for row in group.rows):
        means["batch/unscored"].append(float(row.reward is None))
        if row.reward is None:
            continue
        lags[step - row.policy_version] += 1
        for name, value in _row_metrics(row).items():
            means[name].append(value)
    constant = [all(one.advantage == 0 for one in group.rollouts) for group in groups]
    return {
        **{name: math.fsum(values) / len(values) for name, values in sorted(means.items())},
        "length/max": max(means.get("length/mean", [0.0])),
        "batch/groups": float(len(groups)),
        "batch/rollouts": float(sum(len(group.rollouts) for group in groups)),
        "batch/zero_advantage_groups": float(sum(constant)),
        "lag/mean": sum(lag * count for lag, count in lags.items()) / max(1, lags.total()),
        "lag/max": float(max(lags, default=0)),
        **{f"lag/{lag}": float(count) for lag, count in sorted(lags.items())},
    }


def _row_metrics(row: RolloutRow) -> Mapping[str, float]:
    assert row.reward is not None
    assert row.score is not None
    by_name = {"reward": row.reward, "score": row.score, "length": float(row.length)}
    return {
        **{f"{name}/mean": value for name, value in by_name.items()},
        **{f"{name}/env/{row.environment}": value for name, value in by_name.items()},
        **{f"reward/part/{row.environment}/{part}": v for part, v in row.reward_parts.items()},
        "length/truncated": float(row.finish_reason == "length"),
    }
