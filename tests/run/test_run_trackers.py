"""The built-in trackers: what arrives, what a resumed run does, and what they cost unselected."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prime_core.api import PluginError, Tracker
from prime_core.run import tracker_tensorboard, tracker_wandb
from prime_core.run.tracker_tensorboard import TensorboardParams
from prime_core.run.tracker_wandb import WandbParams
from prime_core.testing.contract import TrackerContract


@dataclass
class LocalContext:
    run_dir: Path | None
    cache_dir: Path = Path("unused")
    offline: bool = False


class TestTensorboard(TrackerContract):
    @pytest.fixture
    def make_tracker(self, tmp_path: Path) -> Callable[[], Tracker]:
        pytest.importorskip("tensorboard", reason="the extra tensorboard isn't installed")
        return lambda: tracker_tensorboard.make(TensorboardParams(), LocalContext(tmp_path))

    @pytest.fixture
    def read_back(self, tmp_path: Path) -> Callable[[], dict[tuple[int, str], float]]:
        def read() -> dict[tuple[int, str], float]:
            from tensorboard.backend.event_processing.event_file_loader import (
                RawEventFileLoader,
            )
            from tensorboard.compat.proto import event_pb2

            found = {}
            for path in sorted((tmp_path / "tensorboard").iterdir()):
                for raw in RawEventFileLoader(str(path)).Load():
                    event = event_pb2.Event.FromString(raw)
                    for value in event.summary.value:
                        found[event.step, value.tag] = value.simple_value
            return found

        return read


def test_tensorboard_outside_a_run_asks_for_a_directory(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="set dir"):
        tracker_tensorboard.make(TensorboardParams(), LocalContext(None))
    pytest.importorskip("tensorboard", reason="the extra tensorboard isn't installed")
    tracker_tensorboard.make(TensorboardParams(dir=tmp_path / "here"), LocalContext(None)).close()
    assert list((tmp_path / "here").iterdir())


@pytest.fixture
def fake_wandb(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for the package; holds what it was given."""
    seen: dict[str, Any] = {"starts": [], "logged": {}, "finished": 0}

    class Refused(Exception):
        pass

    class Run:
        def log(self, metrics: dict[str, float], step: int) -> None:
            seen["logged"].update({(step, name): value for name, value in metrics.items()})

        def finish(self) -> None:
            seen["finished"] += 1

    def init(**options: Any) -> Run:
        if options["project"] == "refused":
            raise Refused("no key")
        seen["starts"].append(options)
        return Run()

    module = SimpleNamespace(init=init, errors=SimpleNamespace(Error=Refused))
    monkeypatch.setitem(sys.modules, "wandb", module)
    return seen


class TestWandb(TrackerContract):
    @pytest.fixture
    def make_tracker(self, fake_wandb: dict[str, Any], tmp_path: Path) -> Callable[[], Tracker]:
        return lambda: tracker_wandb.make(WandbParams(), LocalContext(tmp_path))

    @pytest.fixture
    def read_back(self, fake_wandb: dict[str, Any]) -> Callable[[], dict[tuple[int, str], float]]:
        return lambda: fake_wandb["logged"]


def test_a_resumed_run_goes_on_with_its_wandb_run(
    fake_wandb: dict[str, Any], tmp_path: Path
) -> None:
    for _ in range(2):
        tracker_wandb.make(WandbParams(), LocalContext(tmp_path)).close()
    first, second = fake_wandb["starts"]
    assert first["id"] == second["id"]
    assert first["resume"] == "allow"
    assert first["name"] == tmp_path.name
    assert fake_wandb["finished"] == 2


def test_an_offline_run_never_asks_wandb_for_the_network(
    fake_wandb: dict[str, Any], tmp_path: Path
) -> None:
    tracker_wandb.make(WandbParams(mode="online"), LocalContext(tmp_path, offline=True))
    assert fake_wandb["starts"][0]["mode"] == "offline"


def test_wandb_errors_become_ours(fake_wandb: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="wandb login"):
        tracker_wandb.make(WandbParams(project="refused"), LocalContext(tmp_path))


@pytest.mark.parametrize(
    ("package", "make", "params", "extra"),
    [
        ("wandb", tracker_wandb.make, WandbParams(), "wandb"),
        (
            "tensorboard.compat.proto",
            tracker_tensorboard.make,
            TensorboardParams(),
            "tensorboard",
        ),
    ],
)
def test_a_missing_package_names_the_extra(
    package: str,
    make: Callable[[Any, Any], Tracker],
    params: Any,
    extra: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PluginError, match=rf"prime-core\[{extra}\]"):
        make(params, LocalContext(tmp_path))


def test_unselected_trackers_import_nothing() -> None:
    program = (
        "import sys, prime_core.run.tracker_wandb, prime_core.run.tracker_tensorboard\n"
        "print([m for m in ('wandb', 'tensorboard', 'torch', 'google') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
