"""The examples of published runs say what the papers say; told by `train --dry-run` alone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

QWQ = {
    "model.path": "models/QwQ-32B",
    "model.dtype": "bfloat16",
    "model.shape.hidden_size": 5120,
    "model.shape.num_hidden_layers": 64,
    "model.shape.vocab_size": 152064,
    "engine.use": "vllm",
    "engine.max_tokens": 32768,
    "engine.with.compiled": None,
    "trainer.groups_per_step": 256,
    "trainer.group_size": 16,
    "trainer.optimizer_steps": 8,
    "trainer.lr": 3e-7,
    "trainer.warmup_steps": 25,
    "trainer.max_grad_norm": 0.1,
    "loss.entropy_coef": 1e-4,
    "loss.kl_coef": 1e-3,
    "loss.with": {"epsilon": 0.2, "delta": 4.0},
    "reward.use": "task_minus_length",
    "reward.with": {"alpha": 3e-4},
    "async.level": 2,
}
STATED: dict[str, dict[str, Any]] = {
    "intellect2-short": {**QWQ, "length_budget.with.targets": [1000, 2000, 3000, 4000]},
    "intellect2-long": {**QWQ, "length_budget.with.targets": [2000, 4000, 6000, 8000, 10000]},
    "l1-repro": {
        "engine.use": "vllm",
        "engine.max_tokens": 4000,
        "length_budget.with.targets": [500, 1000, 2000, 3000],
    },
    "deepscaler-1.5b": {"engine.use": "vllm"},
}
# What the dry run says: rollouts a step, parameters in billions.
SIZES = {
    "intellect2-short": (4096, 32.8),
    "intellect2-long": (4096, 32.8),
    "l1-repro": (2048, 1.8),
    "deepscaler-1.5b": (512, 1.8),
}


def dry_run(name: str, out: Path) -> str:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "prime_core", "train", f"examples/{name}.toml"),
            *("--dry-run", "--out", str(out)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def value(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config.get(key) if isinstance(config, dict) else None
    return config


@pytest.mark.parametrize("name", STATED)
def test_a_published_run_as_the_paper_states_it(name: str, tmp_path: Path) -> None:
    said = dry_run(name, tmp_path / "resolved.toml")
    config = tomllib.loads((tmp_path / "resolved.toml").read_text())
    assert {path: value(config, path) for path in STATED[name]} == STATED[name]
    rollouts, billions = SIZES[name]
    lines = {line.strip().split("  ")[0]: line for line in said.splitlines()}
    assert f"  {rollouts:,}  " in lines["rollouts per step"]
    parameters = int(lines["model parameters"].split()[2].replace(",", ""))
    assert parameters / 1e9 == pytest.approx(billions, abs=0.05)
    assert "the model's directory" in said
    if name == "deepscaler-1.5b":
        assert config["engine"]["max_tokens"] + config["engine"]["max_prompt_tokens"] == 2048


def test_a_model_that_is_nowhere_needs_its_shape_for_a_dry_run(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "deepscaler-1.5b.toml").read_text()
    start, end = text.index("[model.shape]"), text.index("[engine]")
    bare = tmp_path / "bare.toml"
    bare.write_text(text[:start] + text[end:])
    done = subprocess.run(
        [sys.executable, "-m", "prime_core", "train", str(bare), "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "doesn't exist" in done.stderr


def test_a_shape_that_the_model_contradicts_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"hidden_size": 64, "max_position_embeddings": 131072}')
    (model / "x.safetensors").touch()
    (model / "tokenizer.json").touch()
    text = (ROOT / "examples" / "deepscaler-1.5b.toml").read_text()
    config = tmp_path / "run.toml"
    config.write_text(text.replace("models/DeepSeek-R1-Distill-Qwen-1.5B", str(model)))
    done = subprocess.run(
        [sys.executable, "-m", "prime_core", "train", str(config), "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "model.shape says hidden_size = 1536, the model's config.json 64" in done.stderr
