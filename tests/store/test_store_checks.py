"""The checks of `trust = "none"`: each names itself first, in a fixed order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rollout_rows import LIMITS, META, dispatch, row, rows

from prime_core.store.checks import CHECKS, Limits, check_name, check_submission
from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import Submission


def checked(
    made: list[RolloutRow],
    announced: Dispatch | None = None,
    meta: SubmissionMeta = META,
    limits: Limits = LIMITS,
) -> list[str]:
    announced = announced or dispatch()
    return check_submission(Submission(tuple(made), meta, "0" * 64), announced, limits)


def test_what_was_announced_and_is_within_bounds_passes() -> None:
    assert checked(rows()) == []


@pytest.mark.parametrize(
    ("check", "announced"),
    [
        ("dispatch", dispatch(n=1)),
        ("dispatch", dispatch(step=2)),
        ("dispatch", dispatch(node="worker-1")),
        ("version", dispatch(policy_version=2)),
        ("digest", dispatch(policy_digest="ff" * 32)),
        ("group", dispatch(groups=3)),
        ("group", dispatch(groups=1)),
        ("group", dispatch(size=8)),
        ("bounds", dispatch(node_class="big")),
    ],
)
def test_another_dispatch_is_refused_by_its_check(check: str, announced: Dispatch) -> None:
    reasons = checked(rows(), announced)
    assert check in [check_name(reason) for reason in reasons]
    assert all(check_name(reason) in CHECKS for reason in reasons)


@pytest.mark.parametrize(
    ("check", "meta"),
    [
        ("run", replace(META, run_id="run-2")),
        ("run", replace(META, lock_digest="cd" * 32)),
        ("engine", replace(META, engine_fingerprint="other")),
    ],
)
def test_another_run_or_engine_is_refused(check: str, meta: SubmissionMeta) -> None:
    assert [check_name(reason) for reason in checked(rows(), meta=meta)] == [check]


@pytest.mark.parametrize(
    "changes",
    [
        {"max_tokens": 32},
        {"temperature": 1.0},
        {"prompt_tokens": [1] * 9},
        {
            "completion_tokens": [1, 9, 1, 9, 1],
            "completion_mask": [True, False, True, False, True],
            "completion_logprobs": [0.0] * 5,
            "turn_ends": [1, 3, 5],
        },
        {"score": 1.5},
        {"score": -0.5},
        {"score": 1.0, "score_status": "invalid_output"},
    ],
)
def test_a_row_out_of_bounds_is_named(changes: dict[str, object]) -> None:
    made = rows()
    made[5] = row(1, 1, **changes)
    reasons = checked(made)
    assert len(reasons) == 1
    assert reasons[0].startswith("bounds: row 5 ")


def test_invalid_output_is_worth_the_lowest_value_as_float32_holds_it() -> None:
    limits = replace(LIMITS, score_ranges={"sums": (0.1, 0.9)})
    low = 0.10000000149011612
    made = [replace(each, score=low, score_status="invalid_output") for each in rows(2, 4)]
    made = [replace(each, reward=0.0, reward_parts={}) for each in made]
    assert checked(made, limits=limits) == []


def test_each_check_speaks_once_in_the_fixed_order() -> None:
    made = [replace(each, max_tokens=99, temperature=2.0) for each in rows()]
    reasons = checked(made, dispatch(policy_version=0), replace(META, run_id="x"))
    assert [check_name(reason) for reason in reasons] == ["run", "version", "bounds"]
