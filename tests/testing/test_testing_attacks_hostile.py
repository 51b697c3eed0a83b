"""Completions made to break verifiers or jails: a node can't choose them, and nobody pays them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.hub import RunContext
from prime_core.testing.attacks import hostile
from prime_core.testing.attacks.hostile import COMPLETIONS, face

# They use up time or memory: seconds each.
SLOW = "uses up time, memory, processes or output"
QUICK = [each for each in COMPLETIONS if each.sort != SLOW and "SIG_IGN" not in each.text]


def unpaid(completions: list[hostile.Hostile]) -> None:
    """None is paid, and a verifier that saw them all still pays a right solution."""
    found = face([*completions, hostile.honest()], RunContext.from_environment().cache_dir)
    assert [each.hostile.text for each in found if each.paid] == [hostile.honest().text]
    assert not [each for each in found if each.score.status == "error"]
    assert not Path("/tmp/was-here").exists()


def test_every_sort_has_completions_and_each_names_its_verifier() -> None:
    assert {each.verifier for each in COMPLETIONS} == {"code", "math"}
    assert len({each.text for each in COMPLETIONS}) == len(COMPLETIONS) > 30


@pytest.mark.integration
def test_no_verifier_pays_a_completion_that_attacks_it() -> None:
    unpaid(QUICK)


@pytest.mark.slow
@pytest.mark.integration
def test_no_verifier_pays_a_completion_that_uses_its_machine_up() -> None:
    unpaid(list(COMPLETIONS))
