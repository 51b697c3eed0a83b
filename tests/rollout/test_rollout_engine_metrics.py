"""What an engine says of itself goes into the worker's metrics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from prime_core.rollout.setup import engine_metrics


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (SimpleNamespace(), {}),
        (
            SimpleNamespace(figures={"waiting": 3, "restarts": 0.0}),
            {"engine/waiting": 3.0, "engine/restarts": 0.0},
        ),
    ],
)
def test_figures_are_named_after_the_engine(engine: Any, expected: dict[str, float]) -> None:
    assert engine_metrics(engine) == expected
