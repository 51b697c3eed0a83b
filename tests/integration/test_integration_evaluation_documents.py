"""The guide to scoring and evaluating is run; its reference names what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from test_integration_documents import BLOCK, ROOT, play

from prime_core.cli.evaluation import evaluate
from prime_core.cli.score import score
from prime_core.engines.openai.plugin import OpenAIParams
from prime_core.evaluation.completions import FIELDS

GUIDE = ROOT / "docs/how-to/score-and-evaluate.md"
REFERENCE = ROOT / "docs/reference/evaluation.md"


@pytest.mark.integration
def test_the_guide_scores_what_it_shows(tmp_path: Path) -> None:
    printed = play(GUIDE, tmp_path)
    shown = next(
        text for language, _, text in BLOCK.findall(GUIDE.read_text()) if language == "text"
    )
    assert shown in printed
    last = next(line for line in printed.splitlines() if line.startswith("{"))
    assert json.loads(last)["mean"]["mean"] == 1.0
    for name in ("report.html", "report.json", "tasks.parquet", "samples.parquet", "journal.jsonl"):
        assert (tmp_path / "scores" / name).is_file()


def test_the_reference_names_every_field_and_parameter() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for name in (*FIELDS, *OpenAIParams.model_fields):
        assert f"`{name}`" in text, name


def test_every_option_of_the_guide_exists() -> None:
    known = {
        option for command in (evaluate, score) for each in command.params for option in each.opts
    }
    text = GUIDE.read_text(encoding="utf-8")
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--head"}
    assert used <= known, used - known
