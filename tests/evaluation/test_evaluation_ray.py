"""Work on Ray: a real cluster that loses a worker, and a made-up one that loses many."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from endpoint_server import EndpointServer, Reply, said
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api import RunError
from prime_core.cli.evaluation import evaluate
from prime_core.cli.score import score
from prime_core.evaluation import ray_crew
from prime_core.evaluation.orders import Order
from prime_core.evaluation.ray_crew import FAILED_STARTS, LOSSES, RayCrew
from prime_core.evaluation.units import Unit

ENV = ["arithmetic", "--with", "digits=1", "--with", "kind=addition"]
FILES = ("report.json", "report.html", "samples.parquet", "tasks.parquet")
ORDER = Order("score", {"use": "toy"}, {}, [], {}, depth=2)
UNITS = [Unit(number, (number, "x")) for number in range(9)]


def local(command: Any, *arguments: str) -> None:
    result = CliRunner().invoke(command, [*ENV, *arguments])
    assert result.exit_code == 0, result.output


def by_seed(body: dict[str, Any]) -> Reply:
    return said(str(body["seed"] % 7), completion=body["seed"] % 5 + 1)


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory with a short name, as the paths of sockets must be."""
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.integration
def test_a_cluster_that_loses_a_worker_finds_what_one_machine_finds(
    tmp_path: Path, short: Path
) -> None:
    pytest.importorskip("ray")
    file = tmp_path / "c.jsonl"
    file.write_text(
        "".join(
            json.dumps({"index": n % 25, "completion": str(n % 11), "token_count": n}) + "\n"
            for n in range(130)
        )
    )
    environment = {
        **os.environ,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns of its own future default
        "RAY_TMPDIR": str(short),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else Ray leaves one in the home directory
    }
    program = [sys.executable, "-W", "error", str(Path(__file__).with_name("ray_program.py"))]
    with EndpointServer(by_seed) as server:
        done = subprocess.run(
            [*program, str(file), str(tmp_path / "ray"), server.url],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert json.loads(done.stdout.splitlines()[-1]) == {"lost": [1, 0]}
        assert server.most <= 4  # of both workers together
        local(score, "--completions", str(file), "--out", str(tmp_path / "local/score"))
        call = ["--endpoint", server.url, "--model", "toy", "--tasks", "6"]
        local(evaluate, *call, "--out", str(tmp_path / "local/eval"))
    for kind in ("score", "eval"):
        for name in FILES:
            there = (tmp_path / "ray" / kind / name).read_bytes()
            assert there == (tmp_path / "local" / kind / name).read_bytes(), f"{kind}/{name}"


class Died(Exception):
    """What the made-up Ray raises where an actor was lost."""


class TaskFailed(Died):
    """What it raises where the code in an actor raised."""


@dataclass(eq=False)
class Reference:
    """What a call will give."""

    actor: Any
    name: str
    given: tuple[Any, ...]


class MadeUpRay:
    """As much of Ray as a crew uses; actors die when the dice say so."""

    class exceptions:
        RayError = Died
        RayTaskError = TaskFailed

    def __init__(self, dies: Callable[[str], bool]) -> None:
        self._dies = dies
        self.hired = 0

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, kind: type) -> Any:
        owner = self

        class Method:
            def __init__(self, actor: Any, name: str) -> None:
                self._actor, self._name = actor, name

            def remote(self, *given: Any) -> Any:
                return Reference(self._actor, self._name, given)

        class Actor:
            def __init__(self) -> None:
                owner.hired += 1
                self.dead = False
                self.number = owner.hired

            def __getattr__(self, name: str) -> Method:
                return Method(self, name)

        class Maker:
            def options(self, **options: Any) -> Maker:
                return self

            def remote(self, order: str) -> Actor:
                assert Order.from_json(order) == ORDER
                return Actor()

        return Maker()

    def wait(self, references: list[Any], num_returns: int, timeout: float) -> Any:
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Any) -> Any:
        actor, name, given = reference.actor, reference.name, reference.given
        if actor.dead or self._dies(name):
            actor.dead = True
            raise Died("worker gone")
        if name == "open":
            return {"host": "made-up", "pid": actor.number}
        return {"results": [{"item": item} for item in given[0]]}

    def kill(self, actor: Any) -> None:
        actor.dead = True


def run(monkeypatch: pytest.MonkeyPatch, made_up: MadeUpRay) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}

    def deliver(number: int, results: list[dict[str, Any]]) -> None:
        assert number not in found
        found[number] = results

    with monkeypatch.context() as patch:
        patch.setattr(ray_crew, "connect", lambda address: made_up)
        asyncio.run(RayCrew("ray").run(ORDER, iter(UNITS), deliver))
    return found


@settings(max_examples=60, deadline=None)
@given(dice=st.lists(st.booleans(), max_size=40))
def test_each_unit_is_delivered_once_whoever_is_lost(dice: list[bool]) -> None:
    losses = iter(dice)
    made_up = MadeUpRay(lambda name: next(losses, False))
    with pytest.MonkeyPatch.context() as monkeypatch:
        try:
            found = run(monkeypatch, made_up)
        except RunError:
            assert sum(dice) >= min(LOSSES, FAILED_STARTS)
        else:
            assert found == {unit.number: [{"item": item} for item in unit.items] for unit in UNITS}


@pytest.mark.parametrize(
    ("method", "said_"), [("open", "before they were ready"), ("do", "while they did unit")]
)
def test_workers_that_always_die_end_the_work(
    monkeypatch: pytest.MonkeyPatch, method: str, said_: str
) -> None:
    made_up = MadeUpRay(lambda name: name == method)
    with pytest.raises(RunError, match=said_):
        run(monkeypatch, made_up)
    assert made_up.hired <= 3 + max(LOSSES, FAILED_STARTS)


def test_an_error_there_is_an_error_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(MadeUpRay):
        def get(self, reference: Any) -> Any:
            return {"error": {"what": "no such plugin", "where": "environment toy", "fix": "x"}}

    with pytest.raises(RunError, match="Ray worker, environment toy: no such plugin"):
        run(monkeypatch, Refusing(lambda name: False))

    class Failing(MadeUpRay):
        def get(self, reference: Any) -> Any:
            raise TaskFailed("TypeError: x")

    with pytest.raises(RunError, match="a worker failed: TypeError"):
        run(monkeypatch, Failing(lambda name: False))


def test_no_cluster_is_an_error_that_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Absent:
        @staticmethod
        def is_initialized() -> bool:
            return False

        @staticmethod
        def init(**options: Any) -> None:
            raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setitem(sys.modules, "ray", Absent)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="ray start --head"):
        ray_crew.connect("ray")
    monkeypatch.setitem(sys.modules, "ray", None)  # type: ignore[arg-type]
    with pytest.raises(RunError, match=r"prime-core\[ray\]"):
        ray_crew.connect("ray")


def test_nothing_to_do_needs_no_cluster() -> None:
    def none() -> Iterator[Unit]:
        return iter(())

    asyncio.run(RayCrew("ray").run(ORDER, none(), lambda number, results: None))
