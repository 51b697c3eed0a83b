"""Rows, dispatches and limits that fit together, for the tests of the store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prime_core.store.checks import Limits
from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow, SubmissionMeta

LOCK = "ab" * 32
DIGEST = bytes(range(32))
META = SubmissionMeta("run-1", LOCK, "engine-1")
LIMITS = Limits(
    run_id="run-1",
    lock_digest=LOCK,
    engine_fingerprint="engine-1",
    temperature=0.7,
    token_limits={"big": 64},
    default_token_limit=16,
    max_prompt_tokens=8,
    max_turns=2,
    score_ranges={"sums": (0.0, 1.0)},
    vocabulary=100,
    node_class="default",
)


def row(k: int = 0, sample: int = 0, **changes: Any) -> RolloutRow:
    """A scored rollout of one turn, by worker-0 for step 3 with version 1, submission 2."""
    plain = RolloutRow(
        environment="sums",
        task_id=f"task-{k}",
        group_id=f"3-worker-0-2-{k}",
        sample=sample,
        step=3,
        policy_version=1,
        node="worker-0",
        submission=2,
        max_tokens=16,
        prompt_tokens=[1, 2],
        completion_tokens=[3, 4, 5],
        completion_mask=[True, True, True],
        completion_logprobs=[-0.5, -0.25, 0.0],
        finish_reason="stop",
        length_budget=None,
        sampling_seed=7 + sample,
        temperature=0.699999988079071,  # float32 of 0.7
        score=1.0,
        score_status="scored",
        reward=0.5,
        reward_parts={"task": 1.0, "length": -0.5},
        proofs=b"",
        policy_digest=DIGEST,
        turn_ends=[3],
    )
    return replace(plain, **changes)


def two_turns(k: int = 0, sample: int = 0, **changes: Any) -> RolloutRow:
    """A rollout in which the environment spoke between two turns of the model."""
    turns: dict[str, Any] = {
        "completion_tokens": [3, 4, 9, 9, 5],
        "completion_mask": [True, True, False, False, True],
        "completion_logprobs": [-0.5, -1.0, 0.0, 0.0, -2.0],
        "turn_ends": [2, 5],
        "finish_reason": "turns",
    }
    return row(k, sample, **{**turns, **changes})


def unscored(k: int = 0, sample: int = 0, status: str = "error", **changes: Any) -> RolloutRow:
    """A rollout without a score."""
    bare: dict[str, Any] = {"score": None, "reward": None, "reward_parts": {}}
    return row(k, sample, score_status=status, **{**bare, **changes})


def rows(groups: int = 2, size: int = 4) -> list[RolloutRow]:
    """Whole groups of mixed rollouts."""
    made = []
    for k in range(groups):
        for sample in range(size):
            make = (row, two_turns, unscored)[sample % 3]
            made.append(make(k, sample))
    return made


def dispatch(groups: int = 2, size: int = 4, **changes: Any) -> Dispatch:
    """What announced `rows(groups, size)`."""
    values: dict[str, Any] = {
        "run_id": "run-1",
        "step": 3,
        "node": "worker-0",
        "n": 2,
        "policy_version": 1,
        "policy_digest": DIGEST.hex(),
        "groups": groups,
        "group_size": size,
        "node_class": "default",
    }
    return Dispatch(**{**values, **changes})
