"""Rewards: forged ones are found, what machines may see differently and no signal left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prime_sanity_checks.rewards import Rewards, RewardsParams

from prime_core.api import Rescored, Reward, Score
from prime_core.testing.contract import SanityCheckContract
from prime_core.testing.toy_submission import (
    toy_submission,
    with_row,
)


class TestRewards(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Rewards(RewardsParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        other = 1.0 - given[0].rows[0].score
        mismatch = toy_submission()
        mismatch[1].scores = {2: Rescored(Score(0.0), 0.0, {}, mismatch="other words")}
        return [
            with_row(given, 0, score=other, reward=other),
            with_row(given, 1, reward=0.5),
            with_row(given, 1, reward_parts={"task": 0.5}),
            with_row(given, 1, reward_parts={}),
            with_row(given, 0, score_status="invalid_output", score=0.0, reward=0.0),
            mismatch,
        ]

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            (Rescored(Score(None, "error"), None, {}), {}),
            (Rescored(Score(0.0, "invalid_output"), 0.0, {}, limited=True), {"score": 1.0}),
            (None, {"score_status": "error", "score": None, "reward": None, "reward_parts": {}}),
        ],
    )
    def test_what_two_machines_may_see_differently_drops_the_group(self, ours, theirs):
        given = with_row(toy_submission(), 5, **theirs)
        if ours is not None:
            given[1].scores = {5: ours}
        (found,) = Rewards(RewardsParams()).check(*given)
        assert (found.severity, found.row) == ("drop", 5)

    def test_errors_on_both_sides_are_nothing(self):
        given = with_row(
            toy_submission(), 5, score_status="error", score=None, reward=None, reward_parts={}
        )
        given[1].scores = {5: Rescored(Score(None, "error"), None, {})}
        assert Rewards(RewardsParams()).check(*given) == []

    def test_an_environment_that_is_not_deterministic_is_never_slashed(self):
        view, context = with_row(toy_submission(), 1, reward=0.5)
        context.run = replace(context.run, deterministic=frozenset())
        assert [f.severity for f in Rewards(RewardsParams()).check(view, context)] == ["reject"]


def graded(scores, rewards, *, fixed=True, ours=None):
    """The first group, with these scores and rewards; ours are the same where none are given."""
    given = toy_submission()
    if not fixed:
        given[1].run = replace(given[1].run, deterministic=frozenset())
    honest = rewards if ours is None else ours
    for index, (score, reward) in enumerate(zip(scores, rewards, strict=True)):
        given[1].scores[index] = Rescored(Score(score), honest[index], {"task": honest[index]})
        given = with_row(
            given, index, score=score, reward=reward, reward_parts={"task": honest[index]}
        )
    return given


class TestShading:
    """A difference that nobody can be blamed for is no signal either."""

    def test_equal_rewards_shaded_within_the_tolerance_are_left_out(self):
        given = graded([1.0] * 4, [1.0 - 9e-7, 1.0, 1.0, 1.0], ours=[1.0] * 4)
        (found,) = Rewards(RewardsParams()).check(*given)
        assert (found.severity, found.row, found.blameless) == ("drop", 0, True)
        assert "no signal" in found.reason
        given[1].rows = range(4, 8)  # in groups that nobody looks at too
        assert Rewards(RewardsParams()).check(*given) == [found]

    @pytest.mark.parametrize("fixed", [True, False])
    def test_what_a_reward_function_says_is_tolerated_to_the_last_digits_alone(self, fixed):
        given = graded([1.0] * 4, [1.0 - 9e-6, 1.0, 1.0, 1.0], ours=[1.0] * 4, fixed=fixed)
        found = Rewards(RewardsParams()).check(*given)
        assert found[0].severity == ("slash" if fixed else "reject")

    def test_a_tolerated_score_counts_with_the_reward_that_follows_from_it(self):
        scores = [0.95, 1.0, 0.0, 0.0]
        for reward, grave in ((0.95, []), (1.0, ["reject"])):
            given = graded(scores, [reward, 1.0, 0.0, 0.0], fixed=False)
            given[1].scores[0] = Rescored(
                Score(1.0), 1.0, {"task": 1.0}, claimed=Reward(0.95, {"task": reward})
            )
            found = Rewards(RewardsParams()).check(*given)
            assert [each.severity for each in found] == grave

    def test_scores_and_rewards_that_differ_by_the_tolerance_alone_are_no_signal(self):
        scores = [0.9, 1.0, 0.95, 0.9]
        (found,) = Rewards(RewardsParams()).check(*graded(scores, scores, fixed=False))
        assert (found.severity, found.blameless) == ("drop", True)
        assert Rewards(RewardsParams()).check(*graded(scores, scores)) == []

    @pytest.mark.parametrize("fixed", [True, False])
    @pytest.mark.parametrize(
        ("scores", "rewards"),
        [
            ([1.0] * 4, [1.0, 0.97, 0.91, 0.82]),  # everybody is right, at other lengths
            ([0.9, 1.0, 0.95, 0.9], [0.9, 0.97, 0.05, 0.72]),
            ([1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 1.0]),
            ([1.0] * 4, [1.0] * 4),
        ],
    )
    def test_what_follows_from_the_tokens_is_signal(self, scores, rewards, fixed):
        assert Rewards(RewardsParams()).check(*graded(scores, rewards, fixed=fixed)) == []


class TestDecoyOfRewards:
    def test_it_leaves_alone_what_could_be_doubted(self):
        view, context = toy_submission()
        context.scores = {0: Rescored(Score(0.0), 0.0, {}, limited=True)}
        spoilt = Rewards(RewardsParams()).decoy(view, context)
        changed = [i for i, row in enumerate(view.rows) if row != spoilt[i]]
        assert changed == list(range(1, 8))
        context.run = replace(context.run, deterministic=frozenset())
        assert list(Rewards(RewardsParams()).decoy(view, context)) == list(view.rows)
