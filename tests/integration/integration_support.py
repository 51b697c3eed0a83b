"""What the end-to-end tests share: a tiny run config, the command, and what a run decided."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from prime_core.store.metrics import read_metrics
from prime_core.store.schema import RolloutRow
from prime_core.store.submission import read_submission

ROOT = Path(__file__).resolve().parents[2]

# An untrained model solves nothing, so the reward is the length term: every group has a signal.
CONFIG = """
[run]
dir = "{run_dir}"
id = "tiny"

[model]
path = "{model_dir}"

[engine]
max_tokens = 8
max_prompt_tokens = 16
groups_per_submission = 4
with = {{ batch_size = 16 }}

[trainer]
steps = {steps}
groups_per_step = 6
group_size = 4
optimizer_steps = 2
lr = 1e-3
max_grad_norm = 1.0
pack_tokens = 128
checkpoint_every = 2

[async]
level = {level}

{environments}
[reward]
use = "task_minus_length"
with = {{ alpha = 0.05 }}

[length_budget]
use = "discrete"
with = {{ targets = [2, 4, 6], instruction = "{{budget}}" }}

[[filters.online]]
use = "nonzero_signal"
with = {{ by = "total" }}

[hosting]
time_limit_s = 60
"""


ADDITION = """
[[environments]]
use = "arithmetic"
with = { kind = "addition", digits = 1, split = "train", test_share = 0.3 }
"""


def write_config(
    folder: Path,
    model_dir: Path,
    *,
    steps: int = 6,
    level: int = 2,
    environments: str = ADDITION,
    extra: str = "",
) -> Path:
    """A config whose run lies in `<folder>/run`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.toml"
    text = CONFIG.format(
        run_dir=folder / "run",
        model_dir=model_dir,
        steps=steps,
        level=level,
        environments=environments,
    )
    path.write_text(text + extra)
    return path


def command(*arguments: str | Path) -> list[str]:
    """`prime-core` under this interpreter."""
    return [sys.executable, "-m", "prime_core", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def prime_core(
    *arguments: str | Path, code: int = 0, limit: float = 400
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, at most `limit` seconds; asserts the exit code."""
    done = subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(), timeout=limit
    )
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-6000:]
    return done


def train(config: Path, *options: str) -> dict[str, Any]:
    """`prime-core train` to its end; the summary."""
    done = prime_core("train", config, "--json", *options)
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return summary


def submitted(run_dir: Path) -> list[RolloutRow]:
    """Every row of every submission of a run."""
    files = sorted(run_dir.glob("steps/*/submissions/*.parquet"))
    return [row for file in files for row in read_submission(file.read_bytes()).rows]


def steps_of(run_dir: Path) -> list[dict[str, Any]]:
    """The trainer's record of every step that it finished."""
    return [
        record
        for record in read_metrics(run_dir)
        if record["process"] == "trainer" and "loss/mean" in record
    ]


def outcomes(run_dir: Path) -> dict[str, Any]:
    """The run's balance, as the command prints it; it exits 1 where it doesn't hold."""
    balance: dict[str, Any] = json.loads(prime_core("outcomes", run_dir, "--json").stdout)
    assert balance["holds"]
    return balance


def decided(run_dir: Path) -> dict[str, str]:
    """SHA-256 of everything that two equal runs must have equal: batches and policies' bytes."""
    files = [
        *run_dir.glob("steps/*/closed.json"),
        *run_dir.glob("policies/*/seal.json"),
        *run_dir.glob("tasks/*.json"),
    ]
    return {
        str(file.relative_to(run_dir)): hashlib.sha256(unsigned(file)).hexdigest()
        for file in sorted(files)
    }


def unsigned(file: Path) -> bytes:
    """An object's bytes without its signature and signer: keys differ between runs."""
    payload = json.loads(file.read_bytes())
    for name in ("signature", "signer"):
        payload.pop(name, None)
    return json.dumps(payload, sort_keys=True).encode()
