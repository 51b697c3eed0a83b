"""Plots: what they read, and that a page stands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.api.errors import RunError
from prime_core.run.plots import plot_run, running_mean, trainer_records
from prime_core.store.metrics import MetricsLog


def test_running_mean() -> None:
    assert running_mean([1.0, 3.0, 5.0, 7.0], 2) == [1.0, 2.0, 4.0, 6.0]


def test_a_step_trained_again_is_drawn_once(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, "trainer")
    for step, loss in ((0, 1.0), (1, 2.0), (1, 3.0)):
        log.log(step, **{"loss/mean": loss})
    log.log(None, note="no step")
    log.close()
    assert [(r["step"], r["loss/mean"]) for r in trainer_records(tmp_path)] == [(0, 1.0), (1, 3.0)]


def test_page_stands_alone_and_escapes(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, "trainer")
    for step in range(30):
        log.log(step, **{"loss/mean": 0.1, "reward/mean": step / 30, "length/mean": 3.0})
    log.close()
    plots = plot_run(
        tmp_path, tmp_path / "out", evaluations={0: 0.3, 30: 0.8}, facts={"a<b": "1 & 2"}
    )
    assert plots.png.read_bytes().startswith(b"\x89PNG")
    page = plots.html.read_text()
    assert "<svg" in page
    assert "a&lt;b" in page
    assert "1 &amp; 2" in page
    assert "src=" not in page


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no step was trained yet"):
        plot_run(tmp_path, tmp_path)
