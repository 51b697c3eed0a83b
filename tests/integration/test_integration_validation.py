"""Runs that take rollouts from a dishonest node: they go on, and every file of the liar is refused.

One real run with one liar is made for the whole module; the tests look at what it left.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from integration_support import (
    ROOT,
    command,
    environment,
    outcomes,
    prime_core,
    write_config,
)

from prime_core.config.load import load_run
from prime_core.store import layout
from prime_core.store.identities import validator_addresses
from prime_core.store.metrics import read_metrics
from prime_core.store.records import Receipt
from prime_core.store.submission import read_submission, write_submission
from prime_core.store.verdicts import Verdict, parse_verdict

pytestmark = pytest.mark.integration

LIAR = ROOT / "tests" / "integration" / "dishonest_worker.py"

TRUST = """
[validation]
decoy_every = 1
max_rejected = 9

[swarm]
max_node_share = {share}
nodes = [{nodes}]
"""


def untrusting(
    folder: Path, model_dir: Path, *, steps: int, workers: int = 1, share: float = 1.0
) -> Path:
    """A config that validates, with one node more than it starts workers."""
    names = [*(f"worker-{index}" for index in range(workers)), "liar"]
    nodes = ", ".join(f'{{ name = "{name}", provider = "{name}", stake = 100 }}' for name in names)
    config = write_config(
        folder, model_dir, steps=steps, extra=TRUST.format(nodes=nodes, share=share)
    )
    text = config.read_text().replace('id = "tiny"', 'id = "tiny"\ntrust = "validate"')
    config.write_text(text.replace("[engine]\n", f"[engine]\nworkers = {workers}\n"))
    return config


def run_with_liar(config: Path, way: str) -> Path:
    """The finished run. The honest workers pause until the liar's first file has its verdict."""
    run_dir = config.parent / "run"
    with (config.parent / "train.log").open("wb") as log:
        train = subprocess.Popen(
            command("train", config, "--json"), stdout=log, stderr=log, env=environment()
        )
        wait_until(lambda: workers_of(train), train)
        paused = workers_of(train)
        for process in paused:
            os.kill(process.pid, signal.SIGSTOP)
        liar = subprocess.Popen(
            [sys.executable, LIAR, run_dir / "run.toml", "liar", way],
            stdout=log,
            stderr=log,
            env=environment(),
        )
        try:
            wait_until(lambda: verdicts(run_dir, "liar") or liar.poll() is not None, train)
            assert liar.poll() is None, (config.parent / "train.log").read_text()[-4000:]
        finally:
            for process in paused:
                os.kill(process.pid, signal.SIGCONT)
        assert train.wait(600) == 0, (config.parent / "train.log").read_text()[-4000:]
        liar.terminate()
        liar.wait(60)
    return run_dir


def workers_of(train: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        children = psutil.Process(train.pid).children()
        return [child for child in children if "worker" in child.cmdline()]
    except psutil.Error:
        return []


def wait_until(true, process: subprocess.Popen[bytes], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert process.poll() is None, "the run ended before"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def verdicts(run_dir: Path, node: str) -> list[Verdict]:
    """The verdicts on a node's files, their signatures verified."""
    validators = None
    found = []
    for path in sorted(run_dir.glob(f"steps/*/verdicts/{node}-*.json")):
        validators = validators or validator_addresses(load_run(run_dir / "run.toml"))
        found.append(parse_verdict(path.read_bytes(), validators).verdict)
    return found


@pytest.fixture(scope="module")
def forged(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run in which one node forged its rewards."""
    folder = tmp_path_factory.mktemp("forged")
    return run_with_liar(untrusting(folder, tiny_model, steps=3), "forged")


def test_every_file_of_the_liar_has_a_rejecting_verdict_with_its_reason(forged: Path) -> None:
    found = verdicts(forged, "liar")
    assert found
    for verdict in found:
        assert verdict.decision == "rejected"
        assert (verdict.check, verdict.severity) == ("rewards", "slash")
        assert "the verifier" in verdict.reason


def test_the_run_goes_on_with_honest_rollouts_alone(forged: Path) -> None:
    balance = outcomes(forged)
    assert balance["total"]["outcomes"]["trained"] == 3 * 6 * 4
    for path in forged.glob("steps/*/closed.json"):
        assert "liar" not in path.read_text()
    assert all(verdict.decision == "accepted" for verdict in verdicts(forged, "worker-0"))


def test_receipts_follow_verdicts(forged: Path) -> None:
    receipts = [Receipt.from_json(p.read_bytes()) for p in forged.glob("steps/*/receipts/*.json")]
    found = [*verdicts(forged, "liar"), *verdicts(forged, "worker-0")]
    by_key = {verdict.key: verdict for verdict in found}
    judged = [receipt for receipt in receipts if receipt.decision != "late"]
    assert judged
    for receipt in judged:
        verdict = by_key[receipt.key]
        assert (receipt.decision, receipt.sha256) == (verdict.decision, verdict.sha256)
        if receipt.decision == "rejected":
            assert receipt.reason == f"{verdict.check}: {verdict.reason}"


def test_the_liars_outcomes_name_the_check(forged: Path) -> None:
    assert outcomes(forged)["total"]["outcomes"]["rejected"] > 0
    why = prime_core("why", forged, "0-liar-0-0/0").stdout
    assert "rejected(rewards)" in why


def test_metrics_say_cost_and_reasons_and_decoys_were_found(forged: Path) -> None:
    records = [r for r in read_metrics(forged) if r["process"] == "validator-0"]
    files = [r for r in records if r.get("validator/files")]
    liars = [r for r in files if r["validator/node"] == "liar"]
    assert {r["validator/rejected_by"] for r in liars} == {"rewards"}
    assert all(r["check/rewards_s"] > 0 and r["validator/checks_per_s"] > 0 for r in files)
    decoys = [r for r in records if r.get("validator/decoys")]
    assert decoys
    assert not any(r["validator/missed_decoys"] for r in decoys)


def test_a_file_is_judged_by_hand(forged: Path, tmp_path: Path) -> None:
    file = next(forged.glob("steps/*/submissions/worker-0-*.parquet"))
    submission = read_submission(file.read_bytes())
    rows = list(submission.rows)
    rows[3] = replace(rows[3], completion_logprobs=[v - 0.5 for v in rows[3].completion_logprobs])
    edited = tmp_path / "edited.parquet"
    edited.write_bytes(write_submission(rows, submission.meta))
    done = prime_core("validate", edited, "--run", forged, "--unsigned", code=1)
    assert "REJECTED" in done.stdout
    assert "by logprobs: row 3" in done.stdout
    assert "the run's verdict on other bytes" in done.stdout
    done = prime_core("validate", file, "--run", forged)
    assert "the run's verdict on this file: ACCEPTED" in done.stdout


class Judged:
    """A copy of a finished run without any verdict, judged anew in this process."""

    def __init__(self, finished: Path, copy: Path) -> None:
        shutil.copytree(finished, copy, ignore=shutil.ignore_patterns("verdicts", "cache", "locks"))
        for pattern in ("steps/*/receipts", "steps/*/closed.json", "outcomes"):
            for path in copy.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in copy.glob("policies/00000[3-9]"):
            shutil.rmtree(path)  # the run isn't over
        loaded = load_run(copy / "run.toml")
        run = loaded.run.model_copy(update={"dir": copy})
        self.config = loaded.model_copy(update={"run": run})
        self.dir = copy


def test_a_validator_that_starts_again_judges_alike_and_once(forged: Path, tmp_path: Path) -> None:
    from prime_core.validation.setup import open_tools
    from prime_core.validation.validator import Validator

    world = Judged(forged, tmp_path / "again")
    poisoned = world.dir / "steps" / "000000" / "submissions" / "worker-0-00000.parquet"
    poisoned.write_bytes(poisoned.read_bytes()[:-9] + b"\xff" * 9)
    key = (0, "worker-0", 1)
    with open_tools(world.config) as tools:
        for _ in range(5):
            tools.attempts.begin(key)  # as if this file had killed its judge five times
        first = Validator(tools)
        assert first.poll()
    with open_tools(world.config) as tools:
        again = Validator(tools)
        while again.poll():
            pass
        loads = tools.recomputer.loads
    mine = {v.key: v for name in ("liar", "worker-0") for v in verdicts(world.dir, name)}
    theirs = {v.key: v for name in ("liar", "worker-0") for v in verdicts(forged, name)}
    assert mine.pop((0, "worker-0", 0)).check == "identity"  # the node signed other bytes
    assert (mine[key].severity, mine.pop(key).check) == ("drop", "validator")
    assert mine
    # what came late in the run has no verdict there; here no step is closed
    assert {k: v for k, v in mine.items() if k in theirs} == {
        k: v for k, v in theirs.items() if k in mine
    }
    assert theirs.keys() - mine.keys() == {(0, "worker-0", 0), key}
    assert loads <= 3 + 1
    assert not list((world.dir / layout.VALIDATION).glob("*/attempts/*"))


def test_the_example_among_strangers_is_a_config(tiny_model: Path) -> None:
    from prime_core.run.configuration import load_run_config

    path = ROOT / "examples" / "untrusted.toml"
    config = load_run_config(path, (f"model.path={json.dumps(str(tiny_model))}",)).config
    assert config.run.trust == "validate"
    assert [node.label for node in config.swarm.nodes] == ["worker-0", "worker-1", "worker-2"]
