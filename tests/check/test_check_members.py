"""Every shipped distribution holds the level that its checks.toml claims, bronze at least."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from prime_core.check.checking import Order, check
from prime_core.check.text_format import as_text

ROOT = Path(__file__).parents[2]


def members() -> list[str]:
    """The folders that the Makefile names."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.search(r"^MEMBERS := (.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("member", members())
def test_a_member_holds_its_level(member: str) -> None:
    report = check(Order(str(ROOT / member)))
    assert report.exit_code == 0, as_text(report)


def test_the_arithmetic_environment_claims_silver() -> None:
    from prime_core.check.checks_file import read_checks_file

    assert read_checks_file(ROOT / "environments/arithmetic").level == "silver"
