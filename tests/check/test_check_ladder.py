"""The mutation test of the ladder: a bad fixture fails exactly its own rule, a good one none."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import pytest
from check_fixtures import BAD, good_of, proven
from check_outcomes import failed
from check_plugins import PLUGINS

from prime_core.check.outcome import Report
from prime_core.check.registry import rules

SEED = zlib.crc32(b"the ladder's slice in CI")
# A few whole runs in every test run, and all of them in `make proofs`.
SLICE = random.Random(SEED).sample(sorted(BAD), 4)


def test_every_rule_has_a_bad_and_a_good_fixture() -> None:
    assert set(BAD) == {rule.id for rule in rules()}
    for rule in rules():
        assert BAD[rule.id]() != good_of(rule.id), f"{rule.id}'s bad fixture is the good one"


@pytest.mark.integration
@pytest.mark.parametrize("files", [proven(), PLUGINS], ids=["environment", "other kinds"])
def test_a_good_distribution_reaches_its_level(
    files: dict[str, str], checked: Callable[..., Report]
) -> None:
    level = "silver" if files is PLUGINS else "gold"
    report = checked(files, level=level)
    said = {outcome.rule.id: outcome.status for outcome in report.outcomes}
    assert not {rule for rule, status in said.items() if status not in ("passed", "not applicable")}
    assert report.reached == level
    assert report.exit_code == 0


@pytest.mark.integration
@pytest.mark.parametrize("rule", SLICE)
def test_a_bad_fixture_fails_its_own_rule_alone(rule: str, checked: Callable[..., Report]) -> None:
    report = checked(BAD[rule](), level="gold" if rule.startswith("U") else "silver")
    assert failed(report) == {rule}
    assert report.exit_code == 1


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("rule", sorted(set(BAD) - set(SLICE)))
def test_every_bad_fixture_fails_its_own_rule_alone(
    rule: str, checked: Callable[..., Report]
) -> None:
    test_a_bad_fixture_fails_its_own_rule_alone(rule, checked)
