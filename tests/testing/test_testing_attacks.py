"""Every dishonest node is caught by the validator's own checks; honest ones never are."""

from __future__ import annotations

import json

import pytest

from prime_core.testing.attacks import honesty, playing, staleness
from prime_core.testing.attacks.catalogue import ATTACKS, BY_NAME
from prime_core.testing.attacks.fuzz import fuzz, small
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.prepared import prepare_tiny
from prime_core.testing.attacks.world import open_world

FILES = 6
SHADED = "shaded-rewards"  # needs equal rewards, so another run
PLAYED = [each for each in ATTACKS if each.needs != "multi_turn" and each.name != SHADED]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return prepare_tiny(tmp_path_factory.mktemp("attacked"))


@pytest.fixture(scope="module")
def world(config):
    with open_world(config) as opened:
        yield opened


@pytest.fixture(scope="module")
def judge(world):
    return Judge(world)


@pytest.fixture(scope="module")
def honest(world, judge):
    return playing.base(world, judge, FILES)


def fails(attack, result) -> str:
    """What is wrong with an attack's result; "" where all is well."""
    if result.caught < result.files and not attack.why:
        return f"{result.files - result.caught} of {result.files} pass"
    if result.harmed:
        return f"{result.harmed} of {result.files} do harm: {result.harm}"
    if not set(result.by) - {""} <= set(attack.caught_by):
        return f"caught by {dict(result.by)}, not {attack.caught_by}"
    allowed = {"accepted" if attack.ending == "drop" else attack.ending}
    if attack.why:
        allowed.add("accepted")
    return "" if set(result.severities) <= allowed else f"ends as {dict(result.severities)}"


@pytest.mark.parametrize("attack", PLAYED, ids=lambda each: each.name)
def test_it_is_caught_by_the_check_that_should(world, judge, honest, attack) -> None:
    result = playing.play(world, judge, attack, honest)
    assert result.files == FILES
    assert fails(attack, result) == ""


def test_honest_nodes_with_other_settings_are_never_rejected(world, judge) -> None:
    found = honesty.noise(world, judge, 16)
    assert [each.setting for each in found] == list(honesty.settings(world))
    assert sum(each.groups for each in found) == 32
    for each in found:
        assert each.rejected == 0, each
        assert each.margins.race_gap < 0.005
        assert each.margins.exponent_mismatches <= 2
    assert found[0].cpu_s["forward pass"] > 0


def test_stale_weights_are_found_where_training_moved_them(world, judge, honest) -> None:
    (far,) = staleness.power(world, judge, honest, learning_rates=(1e-3,), lags=(1,), files=4)
    assert far.caught == 4
    assert far.moved > 1e-3
    (near,) = staleness.power(world, judge, honest, learning_rates=(1e-9,), lags=(1,), files=4)
    assert near.caught == 0
    assert 0 < near.moved < 1e-6


def test_mutated_files_are_refused_or_caught(world, judge, honest) -> None:
    done = fuzz(world, judge, small(world, honest[0]), 200)
    assert done.accepted == 0
    assert done.refused + done.same + done.caught + done.within == done.files == 200
    assert done.refused > 150


def test_files_within_rounding_differ_in_numbers_that_machines_round_and_nothing_else(
    honest,
) -> None:
    from dataclasses import replace

    from prime_core.store.submission import read_submission
    from prime_core.testing.attacks.fuzz import rounding

    original = read_submission(honest[0].data)
    first = original.rows[0]

    def with_first(**changes) -> object:
        return replace(original, rows=(replace(first, **changes), *original.rows[1:]))

    logprobs = [first.completion_logprobs[0] - 0.25, *first.completion_logprobs[1:]]
    assert rounding(original, original) == (0.0, 0.0)
    assert rounding(with_first(completion_logprobs=logprobs), original) == (0.25, 0.0)
    assert rounding(with_first(reward=first.reward + 0.5), original) == (0.0, 0.5)
    for changes in ({"sample": 9}, {"proofs": b""}, {"score": 0.5}, {"reward": None}):
        assert rounding(with_first(**changes), original) is None


def test_results_depend_on_nothing_but_the_seed(world, judge, honest) -> None:
    attack = BY_NAME["in-text"]
    first, again = (attack.forge(world, honest, playing.Random("0")) for _ in range(2))
    assert [each.data for each in first] == [each.data for each in again]


def test_the_command_prints_what_was_caught(config, capsys) -> None:
    from prime_core.cli.attack import attack

    names = ["--attack", "forged-score", "--attack", "proof-none"]
    arguments = [str(config.run.dir), *names, "--count", "2", "--json"]
    attack.main(arguments, standalone_mode=False)
    said = json.loads(capsys.readouterr().out)
    assert [each["attack"] for each in said["attacks"]] == ["forged-score", "proof-none"]
    assert all(each["caught"] == 2 for each in said["attacks"])


def test_attacks_fit_a_run_of_few_tokens(tmp_path) -> None:
    with open_world(prepare_tiny(tmp_path, tokens=6)) as world:
        judge = Judge(world)
        honest = playing.base(world, judge, 2)
        for name in ("suffix", "after-the-end", "prefix", "hostile-text", "padded"):
            result = playing.play(world, judge, BY_NAME[name], honest)
            assert fails(BY_NAME[name], result) == "", name


def test_equal_rewards_shaded_within_the_tolerance_train_nothing(tmp_path) -> None:
    with open_world(prepare_tiny(tmp_path, reward="task")) as world:
        judge = Judge(world)
        honest = playing.base(world, judge, 4)
        result = playing.play(world, judge, BY_NAME[SHADED], honest)
        assert fails(BY_NAME[SHADED], result) == ""
        assert result.files == 4


def test_what_was_found_is_printed_though_an_attack_breaks(config, capsys, monkeypatch) -> None:
    from prime_core.api import FormatError
    from prime_core.cli.attack import attack
    from prime_core.testing.attacks import catalogue
    from prime_core.testing.attacks.attack import Attack, UnfitError

    def breaking(error: Exception) -> Attack:
        def forge(*_: object) -> list[object]:
            raise error

        return Attack(type(error).__name__, "", (), "reject", forge)

    broken = breaking(FormatError("a row is too long")), breaking(UnfitError("no room"))
    for each in broken:
        monkeypatch.setitem(catalogue.BY_NAME, each.name, each)
    names = [*(each.name for each in broken), "unsigned", "copied-first"]
    options = [word for name in names for word in ("--attack", name)]
    arguments = [str(config.run.dir), *options, "--count", "1"]
    with pytest.raises(FormatError, match="too long"):
        attack.main(arguments, standalone_mode=False)
    said = capsys.readouterr().out
    assert "unsigned" in said
    assert "1/1" in said
    assert "the author's file, which is accepted" in said
    assert "FormatError wasn't played: a row is too long" in said
    assert "UnfitError wasn't played: no room" in said


def test_attacks_are_listed_without_a_run(capsys) -> None:
    from prime_core.cli.attack import attack

    attack.main(["--list"], standalone_mode=False)
    assert capsys.readouterr().out.count("\n") == len(ATTACKS)


def test_a_run_that_validates_nothing_is_refused(config) -> None:
    from prime_core.api import RunError

    run = config.run.model_copy(update={"trust": "none"})
    with (
        pytest.raises(RunError, match="every attack passes"),
        open_world(config.model_copy(update={"run": run})),
    ):
        pass


def test_attacks_on_conversations_are_caught(tmp_path) -> None:
    config = prepare_tiny(tmp_path, kind="retry", tokens=60)
    with open_world(config) as world:
        judge = Judge(world)
        honest = playing.base(world, judge, 4)
        for attack in ATTACKS:
            if attack.needs == "multi_turn":
                assert fails(attack, playing.play(world, judge, attack, honest)) == ""


@pytest.mark.slow
def test_three_hundred_files_of_each_attack(world, judge) -> None:
    honest = playing.base(world, judge, 300)
    for attack in PLAYED:
        result = playing.play(world, judge, attack, honest)
        print(result)
        assert fails(attack, result) == "", result
        assert attack.why or result.bound > 0.99


@pytest.mark.slow
def test_none_of_three_thousand_honest_groups_is_rejected(world, judge) -> None:
    found = honesty.noise(world, judge, 1500)
    print(found)
    assert sum(each.groups for each in found) == 3000
    assert sum(each.rejected for each in found) == 0


@pytest.mark.slow
def test_a_hundred_thousand_mutated_files_are_refused_or_caught(world, judge, honest) -> None:
    done = fuzz(world, judge, small(world, honest[0]), 100_000, seed=1)
    print(done)
    assert done.accepted == 0
