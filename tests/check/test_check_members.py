"""Every shipped distribution claims a level; `make check`, which CI runs, holds all to theirs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from gold_evidence import RECIPES, prove

from prime_core.check.checking import Order, check
from prime_core.check.checks_file import read_checks_file
from prime_core.check.evidence import read
from prime_core.check.text_format import as_text

ROOT = Path(__file__).parents[2]


def members() -> list[str]:
    """The folders that the Makefile names."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.search(r"^MEMBERS := (.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.mark.parametrize("member", members())
def test_a_member_claims_silver_at_least(member: str) -> None:
    claimed = read_checks_file(ROOT / member).level
    assert claimed == ("gold" if member in RECIPES else "silver")


def test_ci_checks_every_member_at_its_level() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^check: .*\n\t.*prime-core check --no-cache \$\(MEMBERS\)$", makefile, re.M)
    assert "\nmake check\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.parametrize("member", RECIPES)
def test_committed_evidence_is_whole(member: str) -> None:
    evidence = read_checks_file(ROOT / member).evidence
    for kind in ("profile", "training", "replay"):
        read(ROOT / member / getattr(evidence, kind), kind)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("member", RECIPES)
def test_the_evidence_of_gold_can_be_made_again(member: str, tmp_path: Path) -> None:
    """The reward of a short run rises, a model solves some tasks sometimes, and scores replay."""
    copy = tmp_path / Path(member).name
    shutil.copytree(
        ROOT / member,
        copy,
        ignore=shutil.ignore_patterns(
            "__pycache__", "profile.json", "training.json", "replay.json"
        ),
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    prove(copy, scratch, RECIPES[member])
    report = check(Order(str(copy), "gold"))
    assert report.exit_code == 0, as_text(report)
