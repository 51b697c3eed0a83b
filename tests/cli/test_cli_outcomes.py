"""`prime-core outcomes` and `why` over a small run directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prime_core.api.errors import FormatError, RunError, StoreError
from prime_core.cli.main import cli
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog, OutcomeRow
from prime_core.store.records import Dispatch, Receipt

TOML = """
[model]
path = "model"
[[environments]]
use = "arithmetic"
"""
SAMPLE = "0-worker-0-0-0/1"


def row(sample: int, k: int = 0) -> OutcomeRow:
    return OutcomeRow(
        group_id=f"0-worker-0-0-{k}",
        sample=sample,
        environment="sums",
        task_id="task-1",
        node="worker-0",
        submission=0,
        step=0,
        policy_version=0,
        outcome="late",
        detail="",
        trained_step=None,
        lag=None,
        score=None,
        reward=None,
        length=0,
    )


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / layout.RUN).write_text(TOML)
    store = ObjectStore(str(tmp_path))
    for n in range(2):
        made = Dispatch("r", 0, "worker-0", n, 0, "ab" * 32, 2, 2, "default")
        store.put(layout.dispatch_path(*made.key), made.to_json())
    late = Receipt("r", 0, "worker-0", 0, "0" * 64, "late", "step 0 is closed", ())
    store.put(layout.receipt_path(*late.key), late.to_json())
    OutcomeLog(store).append([row(sample, k) for k in range(2) for sample in range(2)])
    return tmp_path


def test_outcomes_prints_a_table_that_adds_up(run_dir: Path) -> None:
    found = CliRunner().invoke(cli, ["outcomes", str(run_dir)])
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert lines[0].split() == ["step", "dispatched", "late", "carried", "in", "flight"]
    assert lines[1].split() == ["0", "8", "4", "0", "4"]
    assert lines[2].split() == ["total", "8", "4", "0", "4"]
    assert lines[-1].startswith("the balance holds")


def test_outcomes_prints_json(run_dir: Path) -> None:
    found = CliRunner().invoke(cli, ["outcomes", str(run_dir), "--json"])
    step = {"dispatched": 8, "outcomes": {"late": 4}, "carried": 0, "in_flight": 4, "holds": True}
    assert json.loads(found.output) == {"holds": True, "total": step, "steps": {"0": step}}


def test_a_balance_that_fails_exits_1(run_dir: Path) -> None:
    OutcomeLog(ObjectStore(str(run_dir))).append([row(0, 7)])
    found = CliRunner().invoke(cli, ["outcomes", str(run_dir)])
    assert found.exit_code == 1
    assert "DOES NOT HOLD" in found.output


def test_why_tells_the_life(run_dir: Path) -> None:
    found = CliRunner().invoke(cli, ["why", str(run_dir), SAMPLE])
    assert found.exit_code == 0, found.output
    lines = found.output.splitlines()
    assert lines[0].startswith("dispatched at ")
    assert lines[2:] == ["submission late: step 0 is closed", "outcome late: it trained nothing"]
    as_json = json.loads(CliRunner().invoke(cli, ["why", str(run_dir), SAMPLE, "--json"]).output)
    assert as_json == {"sample": SAMPLE, "events": lines}


def test_what_is_no_run_or_no_sample_is_an_error_of_ours(run_dir: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    runner = CliRunner()
    assert isinstance(runner.invoke(cli, ["outcomes", str(empty)]).exception, RunError)
    assert isinstance(runner.invoke(cli, ["why", str(run_dir), "x"]).exception, FormatError)
    unknown = runner.invoke(cli, ["why", str(run_dir), "9-worker-0-0-0/0"])
    assert isinstance(unknown.exception, StoreError)
