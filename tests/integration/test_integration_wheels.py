"""Every wheel is built, installed without the checkout on the path, and used there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MEMBERS = sorted(
    path.parent
    for folder in ("environments", "verifiers", "plugins")
    for path in (ROOT / folder).glob("*/pyproject.toml")
)

SMOKE = """
import importlib.metadata, json, pathlib, sys
import prime_core
from prime_core.hub import Hub
records = Hub.discover().records()
print(json.dumps({
    "file": prime_core.__file__,
    "path": sys.path,
    "plugins": sorted(f"{r.kind}.{r.name}" for r in records),
    "typed": (pathlib.Path(prime_core.__file__).parent / "py.typed").exists(),
}))
"""


def clean_environment() -> dict[str, str]:
    """The environment without anything that would let the checkout in."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheels")
    # hatchling runs from this environment: a build environment of its own would only download it.
    for project in [ROOT, *MEMBERS]:
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
            cwd=project,
            check=True,
            capture_output=True,
        )
    return out


@pytest.fixture(scope="module")
def installed(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the wheels, and this environment's other packages, nothing else."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*/site-packages"))
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"),
            *("--disable-pip-version-check", "--target", str(site)),
            *map(str, wheels.glob("*.whl")),
        ],
        check=True,
        env=clean_environment(),
        cwd=home,
    )
    # Third-party packages come from the outer environment through a path line placed last; the
    # editable checkout's own .pth files are not read from there, so only the wheels can answer.
    outer = Path(next(p for p in sys.path if p.endswith("site-packages")))
    (site / "zz_third_party.pth").write_text(f"{outer}\n")
    return python


def test_every_member_has_a_wheel(wheels: Path) -> None:
    assert len(list(wheels.glob("*.whl"))) == len(MEMBERS) + 1


def test_wheels_work_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [installed, "-P", "-c", SMOKE],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    seen = json.loads(done.stdout)
    assert str(ROOT) not in seen["path"]
    assert Path(seen["file"]).is_relative_to(installed.parents[1])
    assert seen["typed"]
    for plugin in (
        "environment.arithmetic",
        "environment.jsonl",
        "environment.code",
        "verifier.exact",
        "verifier.code",
        "reward.task_minus_length",
        "length_budget.discrete",
        "data_filter.nonzero_signal",
        "observer.samples",
        "sanity_check.replay",
        "inference_engine.transformers",
        "loss.grpo",
        "advantage.group_norm",
    ):
        assert plugin in seen["plugins"]


def test_installed_command_scores_and_explains(installed: Path, tmp_path: Path) -> None:
    """Not only imports: the command loads a plugin's parameters from the wheels alone."""
    command = [installed, "-P", "-m", "prime_core"]
    shown = subprocess.run(
        [*command, "plugins", "show", "environment.arithmetic", "--json"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(shown.stdout)["distribution"] == "prime-env-arithmetic"
