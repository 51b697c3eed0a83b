"""Real lm-eval through the endpoint gets what it gets from the same model in its own process.

lm-eval isn't among the development requirements (it brings thirty packages): `PRIME_LM_EVAL` names
a Python that has `lm-eval[api]`, transformers and accelerate; without it the test is skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from lm_eval_tasks import write_tasks
from serving_support import serving, tiny_model

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def python() -> str:
    named = os.environ.get("PRIME_LM_EVAL")
    if named is None and find_spec("lm_eval") is None:
        pytest.skip("set PRIME_LM_EVAL to a Python with lm-eval[api]")
    return named or sys.executable


def run(python: str, folder: Path, name: str, kind: str, **arguments: object) -> dict[str, Any]:
    """The samples of every task, by task."""
    out = folder / name
    given = ",".join(f"{key}={value}" for key, value in arguments.items())
    command = [
        python, "-m", "lm_eval", "--model", kind, "--model_args", given,
        "--tasks", "toy_choice,toy_words", "--include_path", str(folder), "--device", "cpu",
        "--batch_size", "4", "--log_samples", "--output_path", str(out),
    ]  # fmt: skip
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "home")}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, **offline}
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for task in ("toy_choice", "toy_words"):
        (path,) = out.glob(f"*/samples_{task}_*.jsonl")
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found[task] = [row["filtered_resps"] for row in sorted(rows, key=lambda row: row["doc_id"])]
    return found


def test_lm_eval_finds_the_same_likelihoods_and_the_same_texts(python: str, tmp_path: Path) -> None:
    write_tasks(tmp_path)
    model = tiny_model(tmp_path / "tiny")
    own = run(python, tmp_path, "own", "hf", pretrained=model, dtype="float32", max_length=512)
    with serving(model) as url:
        ours = run(
            python, tmp_path, "ours", "local-completions", model="tiny", tokenizer=model,
            base_url=f"{url}/completions", num_concurrent=4, max_retries=1, max_length=512,
        )  # fmt: skip
    assert ours["toy_words"] == own["toy_words"]
    assert len(own["toy_choice"]) == 12
    for mine, theirs in zip(ours["toy_choice"], own["toy_choice"], strict=True):
        for (value, greedy), (expected, expected_greedy) in zip(mine, theirs, strict=True):
            assert float(value) == pytest.approx(float(expected), abs=1e-3)
            assert greedy == expected_greedy
