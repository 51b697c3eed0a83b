"""The slice of the math verifier's benchmark that CI runs: verdicts and bounds, no times."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def parts() -> dict[str, dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "benchmarks/math_verifier.py", "--quick", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.stdout, done.stderr
    return {part["name"]: part for part in json.loads(done.stdout)}


@pytest.mark.integration
def test_hostile_answers_are_judged_in_time(parts: dict[str, dict[str, object]]) -> None:
    assert parts["ladder"]["failures"] == []
    assert not parts["ladder"]["skipped"]


@pytest.mark.integration
@pytest.mark.parametrize(
    "name",
    [
        "cases",
        "gsm8k solutions",
        "gsm8k golds",
        "qwen completions",
        "math500 twins",
        "math500 others",
    ],
)
def test_verdicts_are_right(parts: dict[str, dict[str, object]], name: str) -> None:
    part = parts[name]
    if part["skipped"]:
        pytest.skip(str(part["skipped"]))
    assert part["failures"] == []


def test_every_listed_disagreement_says_who_is_right_and_why() -> None:
    rows = json.loads((ROOT / "benchmarks" / "math_disagreements.json").read_text())
    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert row["right"] in ("verifier", "published"), row["id"]
        assert len(row["why"]) > 40, row["id"]
