"""Long proofs of runs that validate: stale weights, killed validators, several validators."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import psutil
import pytest
from integration_support import (
    command,
    decided,
    environment,
    outcomes,
    submitted,
    train,
    write_config,
)
from test_integration_validation import run_with_liar, untrusting, verdicts, wait_until

from prime_core.store import layout
from prime_core.store.metrics import read_metrics

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_stale_weights_are_found(tiny_model: Path, tmp_path: Path) -> None:
    """Version 0 itself is honest; every file that claims a later version is refused."""
    config = untrusting(tmp_path, tiny_model, steps=16, workers=2, share=0.5)
    run_dir = run_with_liar(config, "stale")
    stale = 0
    for verdict in verdicts(run_dir, "liar"):
        dispatch = json.loads((run_dir / layout.dispatch_path(*verdict.key)).read_text())
        stale += dispatch["policy_version"] > 0
        expected = "rejected" if dispatch["policy_version"] > 0 else "accepted"
        assert verdict.decision == expected, verdict
    assert stale
    for node in ("worker-0", "worker-1"):
        assert all(verdict.decision == "accepted" for verdict in verdicts(run_dir, node))


def test_a_killed_validator_decides_the_same_bit_for_bit(tiny_model: Path, tmp_path: Path) -> None:
    """From one sealed version 0, whose nonce is drawn, the same run follows."""

    def config_in(name: str) -> Path:
        config = write_config(tmp_path / name, tiny_model, steps=16)
        text = config.read_text().replace('id = "tiny"', 'id = "tiny"\ntrust = "validate"')
        config.write_text(text + "\n[store]\nkeep_policies = 20\n")
        return config

    train(config_in("undisturbed"))
    undisturbed = tmp_path / "undisturbed" / "run"
    config = config_in("killed")
    killed = config.parent / "run"
    killed.mkdir()
    for name in ("run.toml", "lock.json"):
        shutil.copy(undisturbed / name, killed / name)
    for name in ("tasks", "model", "keys", "policies/000000"):
        shutil.copytree(undisturbed / name, killed / name)
    process = subprocess.Popen(command("train", config, "--resume"), env=environment())
    for version in (2, 5, 9, 12):
        wait_until((killed / layout.policy_seal_path(version)).exists, process)
        for child in psutil.Process(process.pid).children():
            if "validator" in child.cmdline():
                child.kill()
    assert process.wait(600) == 0
    assert decided(killed) == decided(undisturbed)
    outcomes(killed)
    runs = (undisturbed, killed)
    first, second = (sorted(p.name for p in run.glob("steps/*/verdicts/*")) for run in runs)
    assert first == second


def test_two_validators_share_honest_work_of_several_turns(
    tiny_model: Path, tmp_path: Path
) -> None:
    environments = """
[[environments]]
use = "arithmetic"
name = "retry"
with = { kind = "retry", digits = 1 }
"""
    config = write_config(tmp_path, tiny_model, steps=6, environments=environments)
    text = config.read_text().replace('id = "tiny"', 'id = "tiny"\ntrust = "validate"')
    config.write_text(text + "\n[validation]\nprocesses = 2\ndecoy_every = 4\n")
    train(config)
    run_dir = tmp_path / "run"
    rows = submitted(run_dir)
    assert any(len(row.turn_ends) == 2 for row in rows), "the test proves nothing"
    assert {verdict.decision for verdict in verdicts(run_dir, "worker-0")} == {"accepted"}
    files = list(run_dir.glob("steps/*/submissions/*.parquet"))
    judged = [verdict.key for verdict in verdicts(run_dir, "worker-0")]
    assert len(judged) == len(set(judged)) >= len(files) - 2  # the last ones may be late
    who = {r["process"] for r in read_metrics(run_dir) if r.get("validator/files")}
    assert who == {"validator-0", "validator-1"}
