"""Calibration on a tiny model: honest settings agree, everything else is told apart."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

from prime_core.api import EngineError
from prime_core.cli.main import cli
from prime_core.config.sections import RunConfig
from prime_core.engines.model_files import local_policy
from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model
from prime_core.hub import Hub, RunContext
from prime_core.validation import calibration_setup
from prime_core.validation.calibrated import PAPER, Calibration
from prime_core.validation.calibration import Calibrator
from prime_core.validation.false_models import changed_policy, int8, off_by


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(
        tmp_path_factory.mktemp("calibrated") / "model",
        initializer_range=0.2,
        chat_template=PLAIN_TEMPLATE,
    )


def make_calibrator(model_dir: Path, prompts: int = 6, tokens: int = 48) -> Calibrator:
    config = RunConfig.model_validate(
        {
            "model": {"path": str(model_dir), "dtype": "float32"},
            "engine": {"max_tokens": tokens, "with": {"batch_size": 4}},
            "environments": [{"use": "arithmetic"}],
        }
    )
    rng = random.Random(5)
    return Calibrator(
        config=config,
        hub=Hub.discover(),
        context=RunContext.from_environment(),
        policy=local_policy(model_dir),
        prompts=[tuple(rng.randrange(44) for _ in range(12)) for _ in range(prompts)],
        tokens=tokens,
        progress=lambda text: None,
        engines=("transformers",),
    )


@pytest.fixture(scope="module")
def calibration(model_dir: Path) -> Calibration:
    return make_calibrator(model_dir).calibrate()


def test_every_honest_setting_is_accepted(calibration: Calibration) -> None:
    assert set(calibration.honest) == {
        "as configured",
        "one at a time",
        "other batches",
        "attention eager",
        "other thread count",
        "engine transformers",
    }
    for measured in calibration.honest.values():
        assert measured.fitted.chunks.count == measured.fitted.sequences.count == 0
    assert calibration.chunks == sum(each.fitted.chunks.of for each in calibration.honest.values())


def test_fitted_thresholds_are_tighter_than_the_papers(calibration: Calibration) -> None:
    fitted = calibration.thresholds
    assert fitted.exponent_mismatches < PAPER.exponent_mismatches
    assert fitted.mantissa_mean < PAPER.mantissa_mean


@pytest.mark.parametrize("kind", ["another sequence", "dtype bfloat16", "weights off by 1 %"])
def test_false_proofs_are_told_apart(calibration: Calibration, kind: str) -> None:
    assert calibration.false[kind].fitted.sequences.count == 0


def test_forgeries_do_not_pass(calibration: Calibration) -> None:
    assert {"constant polynomial", "typical channels"} <= set(calibration.forgeries)
    assert calibration.forged == ()


def test_honest_races_are_lost_by_rounding_alone(calibration: Calibration) -> None:
    for race in calibration.races.values():
        assert race.tokens > 100
        assert race.largest < 1e-3
    assert calibration.margin >= 1e-3
    assert 2e-6 <= calibration.file_loss < calibration.margin


def test_it_is_plain_json(calibration: Calibration) -> None:
    read = json.loads(json.dumps(calibration.to_json()))
    assert read["thresholds"]["mantissa_mean"] == calibration.thresholds.mantissa_mean
    assert read["false"]["int8 weights"]["fitted"]["chunks"]["of"] > 0


def test_one_sequence_is_too_little(model_dir: Path) -> None:
    with pytest.raises(EngineError, match="learn from"):
        make_calibrator(model_dir, prompts=1, tokens=4).calibrate()


def test_changed_weights_are_off_by_what_they_say(model_dir: Path, tmp_path: Path) -> None:
    policy = local_policy(model_dir)
    original = load_file(policy.weights[0])
    for name, change, least, most in (
        ("a", off_by(0.01), 0.0099, 0.0101),
        ("b", int8, 1e-4, 0.05),
    ):
        changed = load_file(changed_policy(policy, change, tmp_path / name).weights[0])
        assert set(changed) == set(original)
        for key, tensor in original.items():
            if tensor.ndim == 2:
                off = (changed[key] - tensor).norm() / tensor.norm()
                assert least < off < most
            elif change is int8:
                assert torch.equal(changed[key], tensor)


CONFIG = """
[model]
path = "{model}"
dtype = "float32"
[engine]
max_tokens = 40
max_prompt_tokens = 64
with = {{ batch_size = 4 }}
[[environments]]
use = "arithmetic"
"""


def run_command(model_dir: Path, folder: Path) -> Any:
    config = folder / "run.toml"
    config.write_text(CONFIG.format(model=model_dir))
    command = ["toploc", "calibrate", str(config), "--sequences", "4", "--out", f"{folder}/o.json"]
    return CliRunner().invoke(cli, command)


def test_the_command_prints_parameters_for_the_run_config(
    calibration: Calibration, model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Calibrator, "calibrate", lambda self: calibration)
    monkeypatch.setattr(calibration_setup, "_prompts", no_prompts)
    result = run_command(model_dir, tmp_path)
    assert result.exit_code == 0, result.output
    assert 'use = "toploc"' in result.output
    assert "another sequence" in result.output
    assert json.loads((tmp_path / "o.json").read_text())["forged"] == []


def test_the_command_refuses_a_setting_that_can_be_forged(
    calibration: Calibration, model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = replace(calibration, forged=("constant polynomial",))
    monkeypatch.setattr(Calibrator, "calibrate", lambda self: forged)
    monkeypatch.setattr(calibration_setup, "_prompts", no_prompts)
    result = run_command(model_dir, tmp_path)
    assert result.exit_code == 1
    assert "refused" in result.output
    assert 'use = "toploc"' not in result.output


async def no_prompts(*args: Any) -> list[tuple[int, ...]]:
    return []


@pytest.mark.slow
def test_the_command_takes_prompts_from_the_environments(model_dir: Path, tmp_path: Path) -> None:
    result = run_command(model_dir, tmp_path)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "o.json").read_text())["chunks"] > 20
