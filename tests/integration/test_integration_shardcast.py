"""A run whose weights come through an origin and two relays, one of which is killed in mid-run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import psutil
import pytest
from integration_support import (
    command,
    environment,
    outcomes,
    steps_of,
    submitted,
    write_config,
)

from prime_core.store.metrics import read_metrics
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import read_seal, sealed_versions
from prime_core.store.trace import read_trace

pytestmark = pytest.mark.integration

STEPS = 5
TREE = """
[shardcast]
mode = "tree"
relays = 2
shard_bytes = 20000
"""


def process_of(supervisor: int, words: str) -> psutil.Process | None:
    for each in psutil.Process(supervisor).children(recursive=True):
        try:
            if words in " ".join(each.cmdline()):
                return each
        except psutil.Error:
            continue
    return None


def test_a_run_through_relays_survives_one_of_them(tiny_model: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, tiny_model, steps=STEPS, extra=TREE)
    text = config.read_text().replace("[engine]\n", "[engine]\nworkers = 2\n")
    config.write_text(text)
    run_dir = tmp_path / "run"
    listening: set[str] = set()
    with subprocess.Popen(
        command("train", config, "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        killed = False
        while process.poll() is None:
            if not killed and len(sealed_versions(ObjectStore(str(run_dir)))) >= 2:
                relay = process_of(process.pid, "prime_core relay")
                assert relay is not None
                for words in ("prime_core fetch", "prime_core worker"):
                    found = process_of(process.pid, words)
                    sockets = found.net_connections("inet") if found else []
                    listening |= {words for each in sockets if each.status == psutil.CONN_LISTEN}
                relay.kill()
                killed = True
            try:
                process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        assert process.stdout is not None
        assert process.stderr is not None
        told, errors = process.stdout.read(), process.stderr.read()
    assert process.returncode == 0, errors[-4000:]
    summary = json.loads(told.splitlines()[-1])
    assert killed
    assert summary["restarts"] >= 1
    assert len(steps_of(run_dir)) == STEPS
    outcomes(run_dir)
    assert listening == set(), "nodes serve nobody"
    _check_that_weights_came_through_relays(run_dir)


def _check_that_weights_came_through_relays(run_dir: Path) -> None:
    seals = {v: read_seal(ObjectStore(str(run_dir)), v) for v in range(STEPS + 1)}
    rows = submitted(run_dir)
    assert rows
    assert all(row.policy_digest == seals[row.policy_version] for row in rows)
    workers = {row.node for row in rows}
    for node in workers:
        held = ObjectStore(str(run_dir / "shardcast" / f"client-{node}"))
        assert sealed_versions(held)
        fetched = [
            record
            for record in read_metrics(run_dir)
            if record["process"] == f"client-{node}" and "shardcast/fetched" in record
        ]
        versions = [record["version"] for record in fetched]
        assert len(set(versions)) == len(versions)
        # The last versions are made when no step is left that could use them.
        assert set(versions) <= set(range(STEPS - 1))
    spans = read_trace(run_dir)
    assert any(span["name"] == "fetch" for span in spans["client-worker-0"])
    for log in (run_dir / "logs").glob("client-*.log"):
        assert not re.search(r"Traceback", log.read_text()), log.read_text()[-2000:]
