"""The band: ends, presets, unknown rates and bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_data_filters import PassRateBandParams, prime_data_filters
from prime_data_filters.pass_rate_band import PassRateBand, make_pass_rate_band
from pydantic import ValidationError

from prime_core.api import DatasetError, Task, TaskProfile
from prime_core.testing.context import OfflineContext


def band(**params: object) -> PassRateBand:
    return make_pass_rate_band(
        PassRateBandParams.model_validate(params), OfflineContext(Path("unused"))
    )


def kept(made: PassRateBand, attempts: int = 8) -> list[int]:
    """The numbers of passes out of `attempts` that are kept."""
    return [
        passes
        for passes in range(attempts + 1)
        if made.keep_task(Task("1", ()), TaskProfile("1", passes / attempts, attempts, passes)).keep
    ]


def test_presets_include_both_ends() -> None:
    assert kept(band(preset="1/8-4/8")) == [1, 2, 3, 4]
    assert kept(band(preset="<=6/8")) == [0, 1, 2, 3, 4, 5, 6]


def test_fractions_meet_the_rates_they_name() -> None:
    assert kept(band(low="1/3", high="2/3"), 3) == [1, 2]
    assert kept(band(low=0.1, high="7/10"), 10) == [1, 2, 3, 4, 5, 6, 7]


def test_reasons_are_short_and_stable() -> None:
    made = band(low=0.25, high=0.5)
    reasons = [made.keep_task(Task("1", ()), TaskProfile("1", r)).reason for r in (0.0, 0.3, 1.0)]
    assert reasons == ["pass rate below band", "pass rate in band", "pass rate above band"]


@pytest.mark.parametrize(("unknown", "keep"), [("keep", True), ("drop", False)])
def test_a_task_without_a_rate_follows_the_policy(unknown: str, keep: bool) -> None:
    decision = band(unknown=unknown).keep_task(Task("1", ()), None)
    assert (decision.keep, decision.reason) == (keep, "pass rate unknown")


def test_a_task_without_a_rate_is_an_error_by_default() -> None:
    with pytest.raises(DatasetError, match="prime-core profile"):
        band().keep_task(Task("q7", ()), None)


def test_a_column_replaces_the_profile() -> None:
    made = band(high=0.5, column="solve_rate", unknown="drop")
    profile = TaskProfile("1", 1.0)
    assert made.keep_task(Task("1", (), metadata={"solve_rate": 0.5}), profile).keep
    assert not made.keep_task(Task("1", (), metadata={"solve_rate": 1}), profile).keep
    assert made.keep_task(Task("1", ()), profile).reason == "pass rate unknown"


@pytest.mark.parametrize("rate", ["0.5", True, 37.5, -0.1, float("nan"), [0.5]])
def test_a_rate_that_is_no_share_is_an_error(rate: object) -> None:
    with pytest.raises(DatasetError, match="no number in"):
        band(column="rate").keep_task(Task("1", (), metadata={"rate": rate}), None)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"low": 0.6, "high": 0.5}, "above high"),
        ({"low": "x"}, "fraction like 3/8"),
        ({"low": "1/0"}, "fraction like 3/8"),
        ({"high": 1.5}, "less than or equal to 1"),
        ({"preset": "1/8-4/8", "low": 0.1}, "exclude each other"),
        ({"preset": "easy"}, "1/8-4/8"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        PassRateBandParams.model_validate(params)


def test_both_are_registered() -> None:
    assert [spec.name for spec in prime_data_filters()] == ["nonzero_signal", "pass_rate_band"]
