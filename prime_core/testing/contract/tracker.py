"""What every tracker keeps: it takes any step's finite metrics, and closes.

Authors inherit `TrackerContract` and override `make_tracker`, and `read_back` where they can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from prime_core.api import Tracker
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override

Logged = Mapping[tuple[int, str], float]


class TrackerContract:
    """Inherit, and override `make_tracker`."""

    @pytest.fixture
    def make_tracker(self) -> Callable[[], Tracker]:
        """A function that makes a tracker; called again, it goes on where the last one ended."""
        made: Callable[[], Tracker] = override("make_tracker", "makes the tracker")
        return made

    @pytest.fixture
    def read_back(self) -> Callable[[], Logged] | None:
        """A function that reads what was logged as {(step, metric): value}; None where none can."""
        return None

    def test_has_every_member(self, make_tracker: Callable[[], Tracker]) -> None:
        tracker = make_tracker()
        assert missing_members(tracker, [Tracker]) == []
        tracker.close()

    def test_takes_what_a_run_logs(self, make_tracker: Callable[[], Tracker]) -> None:
        tracker = make_tracker()
        for metrics in ({"reward/env": 0.5, "lag": 2}, {}, {"reward/env": -1e30, "new": 1e-30}):
            tracker.log(0, metrics)
        tracker.log(7, {"lag": 0.0})  # steps may be left out
        tracker.close()

    def test_metrics_arrive(
        self, make_tracker: Callable[[], Tracker], read_back: Callable[[], Logged] | None
    ) -> None:
        if read_back is None:
            pytest.skip("override `read_back` to test what arrives")
        wanted = {(step, f"m{index}"): step + index / 4 for step in range(3) for index in range(2)}
        tracker = make_tracker()
        for step in range(3):
            values = {name: value for (at, name), value in wanted.items() if at == step}
            given = dict(values)
            tracker.log(step, given)
            assert given == values, "log changed the metrics it was given"
        tracker.close()
        logged = read_back()
        for key, value in wanted.items():
            assert logged[key] == pytest.approx(value, rel=1e-6), key

    def test_a_second_tracker_goes_on(self, make_tracker: Callable[[], Tracker]) -> None:
        for step in range(2):  # a resumed run opens it again
            tracker = make_tracker()
            tracker.log(step, {"reward": float(step)})
            tracker.close()
