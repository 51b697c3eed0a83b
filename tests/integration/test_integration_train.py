"""A whole run: separate processes that meet in files, asynchronous, balanced, explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from integration_support import prime_core, train, write_config

from prime_core.cli.train import closing
from prime_core.store.metrics import read_metrics
from prime_core.store.trace import read_trace

pytestmark = pytest.mark.integration

STEPS, GROUPS, SIZE = 6, 6, 4


@pytest.fixture(scope="module")
def finished(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("train")
    summary = train(write_config(folder, tiny_model, steps=STEPS))
    return folder, summary


def test_every_dispatched_rollout_has_one_outcome(finished: tuple[Path, Any]) -> None:
    folder, summary = finished
    done = prime_core("outcomes", folder / "run", "--json")
    balance = json.loads(done.stdout)
    assert balance["holds"]
    total = balance["total"]
    assert total["outcomes"]["trained"] == STEPS * GROUPS * SIZE
    assert total["in_flight"] == 0
    assert total["dispatched"] == sum(total["outcomes"].values())
    assert summary["outcomes"] == total["outcomes"]
    assert summary["steps"] == STEPS
    assert summary["restarts"] == 0


def test_the_lag_is_exact(finished: tuple[Path, Any]) -> None:
    _, summary = finished
    per_step = GROUPS * SIZE
    assert summary["lag"] == {
        "0": per_step,
        "1": per_step,
        "2": (STEPS - 2) * per_step,
    }


def test_engine_and_trainer_agree(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    records = [r for r in read_metrics(folder / "run") if r["process"] == "trainer"]
    steps = [record for record in records if "loss/mean" in record]  # others say what it waits for
    assert len(steps) == STEPS
    assert max(record["mismatch/kl"] for record in steps) < 1e-9


def test_generation_overlaps_training(finished: tuple[Path, Any]) -> None:
    """Processes of their own: some rollouts are generated while the trainer trains."""
    folder, summary = finished
    spans = read_trace(folder / "run")
    trained = [(s["ts"], s["ts"] + s["dur"]) for s in spans["trainer"] if s["name"] == "train"]
    made = [(s["ts"], s["ts"] + s["dur"]) for s in spans["worker-0"] if s["name"] == "generate"]
    assert any(a < d and c < b for a, b in trained for c, d in made)
    names = {span["name"] for process in spans.values() for span in process}
    assert {"generate", "score", "wait", "load_policy", "train", "publish"} <= names
    merged = json.loads(Path(summary["trace"]).read_text())
    assert merged["traceEvents"]


def test_one_samples_life_is_told(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    told = prime_core("why", folder / "run", "3-worker-0-0-0/0").stdout
    for word in ("dispatched", "version 1", "trained"):
        assert word in told


def test_report_prints_the_papers_table(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    told = prime_core("report", folder / "run", "--plot", folder / "plots").stdout
    for word in ("broadcast", "batch ready", "validation", "step", "inference / training", "idle"):
        assert word in told
    assert (folder / "plots" / "run.png").stat().st_size > 10_000


def test_a_finished_run_says_what_came_out_and_what_to_ask_next(
    finished: tuple[Path, Any],
) -> None:
    folder, summary = finished
    told = prime_core("train", folder / "config.toml", "--resume").stdout
    assert f"rollouts    {sum(summary['outcomes'].values())}: " in told
    assert f"prime-core report {folder / 'run'}" in told
    evaluation = {"sampled": 0.25, "greedy": None, "tasks": 8}
    line = closing({**summary, "evaluations": {"6": evaluation}}).splitlines()[0]
    assert line == "version 6   0.250 sampled  (mean score of 8 held-out tasks)"


def test_a_used_directory_is_refused_and_a_finished_run_resumes_to_nothing(
    finished: tuple[Path, Any],
) -> None:
    folder, summary = finished
    refused = prime_core("train", folder / "config.toml", code=2)
    assert "the run directory isn't empty" in refused.stderr
    assert "--resume" in refused.stderr
    again = train(folder / "config.toml", "--resume")
    assert again["outcomes"] == summary["outcomes"]


def test_another_config_cant_resume_a_run(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    refused = prime_core(
        "train", folder / "config.toml", "--resume", "--set", "trainer.lr=0.5", code=2
    )
    assert "the config differs from the run's own in trainer.lr" in refused.stderr


def test_the_resolved_config_tells_origins(finished: tuple[Path, Any]) -> None:
    folder, _ = finished
    text = (folder / "run" / "run.toml").read_text()
    assert "config.toml:" in text
    assert "default" in text
    explained = prime_core("config", "explain", folder / "run" / "run.toml", "trainer.lr").stdout
    assert "0.001" in explained
