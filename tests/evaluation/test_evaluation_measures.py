"""Intervals, summaries, spreads and profiles without a model."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prime_core.api import FormatError, RunError, Score, TaskProfile
from prime_core.evaluation.evaluate import EvalResult, Measured, overall, summarise
from prime_core.evaluation.interval import scaled_wilson, wilson
from prime_core.evaluation.profiles import (
    ProfileSettings,
    histogram,
    kept_by_band,
    profile_path,
    read_profile,
    write_profile,
)
from prime_core.evaluation.sampling import Sampled, sampling_seed, spread

DIGEST = "ab" * 32
SETTINGS = ProfileSettings("toy", "{}", "data", DIGEST, 8, 1.0, 32, 0)


def test_wilson_agrees_with_published_values() -> None:
    # Newcombe 1998, table I: 81 of 263, and 0 of 20.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(0.5, 0) == (0.0, 1.0)


def test_an_interval_is_in_the_environments_range() -> None:
    low, high = scaled_wilson(0.0, 100, (-1.0, 1.0))
    assert low == pytest.approx(-high)
    assert scaled_wilson(2.0, 5, (2.0, 2.0)) == (2.0, 2.0)


def judged(task: str, *values: float | None) -> Sampled:
    scores = tuple(Score(value) if value is not None else Score(None, "error") for value in values)
    return Sampled(task, scores, (4,) * len(values), (False,) * (len(values) - 1) + (True,))


def test_unscored_completions_are_counted_and_left_out() -> None:
    measured = summarise(
        [judged("a", 1.0, None), judged("b", 0.0, 0.0), judged("c", None, None)], (0.0, 1.0)
    )
    assert (measured.mean, measured.tasks, measured.completions) == (0.5, 2, 6)
    assert (measured.unscored, measured.length, measured.truncated) == (3, 4.0, 0.5)
    nothing = summarise([judged("c", None)], (0.0, 1.0))
    assert (nothing.mean, nothing.low, nothing.high) == (None, 0.0, 1.0)


def test_the_overall_mean_weighs_environments_by_their_tasks() -> None:
    def one(mean: float | None, tasks: int) -> Measured:
        return Measured(mean, 0.0, 1.0, tasks, tasks, 0, 1.0, 0.0)

    assert overall({"a": one(1.0, 30), "b": one(0.0, 10), "c": one(None, 0)}) == 0.75
    assert overall({}) is None
    printed = EvalResult(3, {"a": one(1.0, 30)}, {}).to_json()
    assert (printed["version"], printed["sampled"], printed["greedy"]) == (3, 1.0, None)
    assert printed["tasks"] == 30
    assert list(printed["environments"]["a"]) == ["sampled"]


def test_tasks_are_spread_evenly() -> None:
    assert spread(10, None) == spread(10, 20) == list(range(10))
    assert spread(10, 4) == [0, 2, 5, 7]
    assert len(set(spread(1000, 999))) == 999


def test_seeds_differ_by_task_and_sample_and_have_63_bits() -> None:
    seeds = {sampling_seed(s, e, t, k) for s in (0, 1) for e in "ab" for t in "xy" for k in (0, 1)}
    assert len(seeds) == 16
    assert all(0 <= seed < 2**63 for seed in seeds)


PROFILES = [TaskProfile(str(passes), passes / 8, 8, passes) for passes in range(9)]


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = profile_path(tmp_path, "toy", DIGEST)
    write_profile(path, SETTINGS, PROFILES)
    assert read_profile(tmp_path, "toy", DIGEST) == {one.task_id: one for one in PROFILES}
    assert path.name == "toy-abababababababab.parquet"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_missing_or_foreign_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="prime-core profile toy"):
        read_profile(tmp_path, "toy", DIGEST)
    path = profile_path(tmp_path, "toy", DIGEST)
    write_profile(path, SETTINGS, PROFILES)
    same_name = DIGEST[:16] + "cd" * 24
    with pytest.raises(FormatError, match="another schema or model"):
        read_profile(tmp_path, "toy", same_name)
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with pytest.raises(FormatError, match="not a profile"):
        read_profile(tmp_path, "toy", DIGEST)
    path.write_bytes(b"nonsense")
    with pytest.raises(FormatError, match="not a profile"):
        read_profile(tmp_path, "toy", DIGEST)


def test_bands_are_inclusive() -> None:
    assert histogram(PROFILES, 8) == [1] * 9
    assert kept_by_band(PROFILES) == {"1/8-4/8": 4, "<=6/8": 7}
