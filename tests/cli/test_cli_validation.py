"""`prime-core audit-plan`: what it prints and refuses; the guide shows its very words."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prime_core.api import RunError
from prime_core.cli.main import cli
from prime_core.validation import audit_plan as plan

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "take-rollouts-from-others.md"
SHOWN = re.compile(r"```console\n\$ prime-core (audit-plan .*?)\n(.*?)```", re.DOTALL)


def ask(*words: str) -> Result:
    return CliRunner().invoke(cli, ["audit-plan", *words])


def test_the_guide_shows_what_the_command_prints() -> None:
    ((command, printed),) = SHOWN.findall(GUIDE.read_text(encoding="utf-8"))
    done = CliRunner().invoke(cli, command.split())
    assert done.exit_code == 0
    assert done.stdout == printed


@pytest.mark.parametrize("option", ["--stake", "--locked", "--gain", "--power"])
@pytest.mark.parametrize("number", ["nan", "inf", "-1"])
def test_what_is_no_amount_is_refused(option: str, number: str) -> None:
    given = {"--stake": "1", "--gain": "1", option: number}
    done = ask(*(word for pair in given.items() for word in pair))
    assert isinstance(done.exception, RunError)


@pytest.mark.parametrize("words", [("--groups", "0"), ("--spot-groups", "-1")])
def test_no_groups_are_refused(words: tuple[str, str]) -> None:
    assert ask("--stake", "1", "--gain", "1", *words).exit_code == 2


def test_more_spot_groups_than_groups_are_all_of_them() -> None:
    said = json.loads(
        ask("--stake", "9", "--gain", "1", "--groups", "2", "--spot-groups", "5", "--json").stdout
    )
    assert said["spot_power"] == pytest.approx({"1": 0.99, "2": 0.9999})


def test_it_exits_1_where_no_share_is_enough() -> None:
    for more in ([], ["--json"]):
        done = ask("--stake", "0", "--gain", "5", *more)
        assert done.exit_code == 1
        assert "no share is enough" in done.stdout or json.loads(done.stdout)["least_share"] is None


def test_the_share_that_it_names_is_enough() -> None:
    said = ask("--stake", "1000", "--gain", "5").stdout.splitlines()[0]
    share = float(said.rpartition(" ")[2])
    assert plan.expected_gain(plan.Stakes(1000, 0, 5, 0.99), share) <= 0


def test_a_weak_check_needs_many_files_and_says_how_many() -> None:
    said = json.loads(ask("--stake", "1", "--gain", "1", "--power", "1e-6", "--json").stdout)
    assert said["shares"][-1]["files_until_found"] == pytest.approx(4.605e6, rel=1e-3)


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("power", [0.3, 1.0])
def test_a_spot_check_finds_what_all_its_draws_together_find(groups: int, power: float) -> None:
    for spots, bad in itertools.product(range(groups + 1), range(groups + 1)):
        draws = list(itertools.combinations(range(groups), spots))
        missed = [(1 - power) ** sum(group < bad for group in draw) for draw in draws]
        expected = 1 - sum(missed) / len(missed)
        assert plan.spot_power(groups, spots, bad, power) == pytest.approx(expected)
