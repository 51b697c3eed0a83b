"""The demo among three nodes learns as well with a dishonest one as without (slow)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from integration_support import ROOT, outcomes, steps_of, train
from test_integration_validation import run_with_liar, verdicts

from prime_core.run.demo import build_and_warm_up, demo_config

pytestmark = [pytest.mark.integration, pytest.mark.slow]

STEPS = int(os.environ.get("PRIME_UNTRUSTED_STEPS", "60"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's model after its warm-up."""
    out = tmp_path_factory.mktemp("warm")
    config = demo_config(out, 0, check_files=False).config
    build_and_warm_up(config, out, print)
    return out / "model"


def config_in(folder: Path, model: Path, *, liar: bool) -> Path:
    """`examples/untrusted.toml` for a folder; the third node is the liar, or honest."""
    folder.mkdir()
    text = (ROOT / "examples" / "untrusted.toml").read_text()
    text = text.replace('"runs/untrusted"', f'"{folder / "run"}"')
    text = text.replace('"runs/demo/model"', f'"{model}"')
    text = text.replace("steps = 400", f"steps = {STEPS}")
    text = text[: text.index("[eval]")]  # what is compared is the reward of the run itself
    if liar:
        text = text.replace('name = "worker-2"', 'name = "liar"')
        text = text.replace("workers = 3 ", "workers = 2 ")
    (folder / "config.toml").write_text(text)
    return folder / "config.toml"


def rewards(run_dir: Path) -> tuple[float, float]:
    """Mean reward of the first and the last ten steps."""
    means = [step["reward/mean"] for step in steps_of(run_dir)]
    return sum(means[:10]) / 10, sum(means[-10:]) / 10


def test_the_run_learns_as_without_the_liar(warm: Path, tmp_path: Path) -> None:
    train(config_in(tmp_path / "honest", warm, liar=False))
    without = tmp_path / "honest" / "run"
    with_liar = run_with_liar(config_in(tmp_path / "liar", warm, liar=True), "forged")
    before, after = rewards(without)
    _, among = rewards(with_liar)
    print(f"reward {before:.3f} at first, {after:.3f} without, {among:.3f} with the liar")
    assert after > before
    assert among > before
    assert abs(among - after) < 0.1
    found = verdicts(with_liar, "liar")
    assert found
    assert all(verdict.decision == "rejected" and verdict.reason for verdict in found)
    for run_dir, nodes in ((without, 3), (with_liar, 2)):
        outcomes(run_dir)
        for index in range(nodes):
            judged = verdicts(run_dir, f"worker-{index}")
            assert all(verdict.decision == "accepted" for verdict in judged)
