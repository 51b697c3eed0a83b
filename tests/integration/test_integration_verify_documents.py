"""The guide to `prime-core verify` and the math environment's example do what they say."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest
from test_integration_documents import ROOT, play

from prime_core.api.protocols import Verifier
from prime_core.cli.verify import verify


@pytest.mark.integration
def test_the_guide_prints_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("math_verify", reason="the extra second-opinion isn't installed")
    printed = play(ROOT / "docs/how-to/verify-answers.md", tmp_path)
    assert '  extraction_rule: "box"' in printed
    assert '  rule: "' in printed
    assert "all           4      4               0" in printed
    assert "second opinion: 4 asked, 1 disagree\n  hedge: 0 here" in printed
    lines = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [line["value"] for line in lines] == [1.0, 0.0, 0.0, 0.0]


def test_the_reference_names_every_option_and_optional_member() -> None:
    page = (ROOT / "docs/reference/verify.md").read_text()
    for option in verify.params:
        for name in option.opts:
            assert name in page or name in ("name", "-h", "--help"), name
    for member in ("from_case", "explain", "check_gold", "second_opinion"):
        assert f"`{member}(" in page
        assert f"`{member}(" in (Verifier.__doc__ or "")


def test_the_example_of_the_math_environment_runs() -> None:
    readme = ROOT / "environments/math/README.md"
    failed, attempted = doctest.testfile(str(readme), module_relative=False, encoding="utf-8")
    assert attempted > 0
    assert failed == 0
