"""Origin, relay and client killed at drawn instants: the version comes, whole and once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from shardcast_support import RUN, RUN_TOML, SHARD, SHARDS, SIGNER, SlowTrainer

from prime_core.run.tree import free_ports
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import fetch_policy

pytestmark = pytest.mark.integration

KILLS = 4


class Cast:
    """The three processes, each started again after its kill as a supervisor would."""

    def __init__(self, folder: Path) -> None:
        up, down = (f"127.0.0.1:{port}" for port in free_ports(2))
        identity = ["--signer", SIGNER.address, "--run-id", RUN]
        self._commands: dict[str, list[object]] = {
            "origin": ["origin", folder / "run", "--listen", up],
            "relay": ["relay", "--upstream", up, "--listen", down, "--dir", folder / "relay"],
            "client": ["fetch", "0", "--relays", down, "--dir", folder / "client"],
        }
        for name in ("relay", "client"):
            self._commands[name] += identity
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._log = (folder / "log").open("ab")
        for name in self._commands:
            self.start(name)

    def start(self, name: str) -> None:
        words = [sys.executable, "-m", "prime_core", *map(str, self._commands[name])]
        quiet = subprocess.DEVNULL
        self._running[name] = subprocess.Popen(words, stdout=quiet, stderr=self._log)

    def kill(self, name: str) -> None:
        """SIGKILL; a client that has ended well already stays so."""
        if self._running[name].poll() == 0:
            return
        self._running[name].kill()
        self._running[name].wait()
        self.start(name)

    def join_client(self) -> int:
        return self._running["client"].wait(120)

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()
        self._log.close()


@contextmanager
def cast(folder: Path) -> Iterator[Cast]:
    running = Cast(folder)
    try:
        yield running
    finally:
        running.close()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 25))]
)
def test_a_version_comes_whatever_is_killed_and_when(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    trainer = SlowTrainer(tmp_path / "run", tmp_path / "scratch")
    (tmp_path / "run/run.toml").write_text(RUN_TOML.format(dir=tmp_path / "run"))
    victims = draw.choices(["origin", "relay", "client"], k=KILLS)
    with cast(tmp_path) as running:
        for victim in victims:
            trainer.go_on(draw.randint(0, (SHARDS + 2) // KILLS))
            time.sleep(draw.uniform(0.0, 1.5))
            running.kill(victim)
        trainer.finish()
        assert running.join_client() == 0, (tmp_path / "log").read_text()[-3000:]
    assert b"Traceback" not in (tmp_path / "log").read_bytes()
    for name in ("relay", "client"):
        store = ObjectStore(str(tmp_path / name))
        cache = tmp_path / f"cache-{name}"
        files = fetch_policy(store, 0, tmp_path, cache, signer_address=SIGNER.address)
        assert files.weights[0].read_bytes() == trainer.data
        held = sorted(path.name for path in (tmp_path / name / "policies/000000").iterdir())
        lines = [f"shard-{index:05d}.json" for index in range(SHARDS)]
        assert held == ["header.json", "seal.json", *lines, "weights.safetensors"]
        used = (tmp_path / name / "policies/000000/weights.safetensors").stat().st_blocks * 512
        assert used <= SHARD * SHARDS + 4096
