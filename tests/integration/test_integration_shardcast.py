"""A run through two relays, one of which dies, to two workers, one of which gets weights late."""

from __future__ import annotations

import json
import re
import subprocess
import threading
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
shard_bytes = 4000
"""


def process_of(supervisor: int, words: str) -> psutil.Process | None:
    for each in psutil.Process(supervisor).children(recursive=True):
        try:
            if words in " ".join(each.cmdline()):
                return each
        except psutil.Error:
            continue
    return None


def hold_back(run_dir: Path, supervisor: int, over: threading.Event, held: list[int]) -> None:
    """Stop one worker's client in mid-transfer until the other worker generates on that version."""
    policies = run_dir / "shardcast/client-worker-1/policies"
    client = None
    while not held and not over.wait(0.002):
        for version in range(1, STEPS - 1):
            directory = policies / f"{version:06d}"
            if (directory / "seal.json").exists() or not (directory / "header.json").exists():
                continue
            client = client or process_of(supervisor, "--node worker-1 --relays")
            assert client is not None
            client.suspend()
            if not (directory / "seal.json").exists():
                held.append(version)
                while not generated(run_dir, "worker-0", version) and not over.wait(0.05):
                    pass
            client.resume()
            break


def generated(run_dir: Path, node: str, version: int) -> list[tuple[float, float]]:
    """When a worker generated on a version: spans of wall-clock microseconds."""
    return spans_of(run_dir, node, "generate", version)


def spans_of(run_dir: Path, process: str, name: str, version: int) -> list[tuple[float, float]]:
    return [
        (span["ts"], span["ts"] + span["dur"])
        for span in read_trace(run_dir).get(process, [])
        if span["name"] == name and span["args"]["version"] == version
    ]


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
        killed, over, held = False, threading.Event(), list[int]()
        slowing = threading.Thread(target=hold_back, args=(run_dir, process.pid, over, held))
        slowing.start()
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
        over.set()
        slowing.join()
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
    (version,) = held
    (fetched,) = spans_of(run_dir, "client-worker-1", "fetch", version)
    meanwhile = [
        span
        for span in generated(run_dir, "worker-0", version)
        if fetched[0] < span[0] and span[1] < fetched[1]
    ]
    assert meanwhile, "the fast node generated on what the slow one was still downloading"
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
