"""Checks that need no forward pass keep the contract: honest files pass, others don't."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prime_sanity_checks.assignment import Assignment
from prime_sanity_checks.bounds import Bounds, BoundsParams
from prime_sanity_checks.identity import Identity
from prime_sanity_checks.policy_digest import PolicyDigest
from prime_sanity_checks.rewards import Rewards, RewardsParams
from prime_sanity_checks.schema import Schema, SchemaParams

from prime_core.api import HostError, StoreError
from prime_core.testing.contract import SanityCheckContract
from prime_core.testing.toy_submission import (
    MAX_TOKENS,
    toy_submission,
    with_row,
    with_submission,
)


class TestSchema(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Schema(SchemaParams())

    @pytest.fixture
    def dishonest(self):
        view, context = toy_submission()
        context.unreadable = "not Parquet\nat all"
        return [(replace(view, rows=()), context)]


class TestIdentity(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return Identity

    @pytest.fixture
    def dishonest(self):
        cases = []
        for changes in (
            {"signer": "0x" + "cd" * 20},
            {"sha256": "0" * 64},
            {"n": 1},
            {"step": 4},
            {"run_id": "other"},
            {"size": 1},
        ):
            view, context = toy_submission()
            context.signed = replace(context.signed, **changes)
            cases.append((view, context))
        view, context = toy_submission()
        context.signed = None
        cases.append((view, context))
        view, context = toy_submission()
        context.node = replace(context.node, address=None)
        cases.append((view, context))
        view, context = toy_submission()
        context.earlier = {view.sha256: "2-other-00000"}
        cases.append((view, context))
        view, context = toy_submission()
        others = ({"policy_version": 0}, {"policy_version": 9}, {"node_class": "big"})
        assert all(
            found.blameless
            for each in others
            for found in Identity().check(*with_submission(context, replace(view, **each)))
        )
        return [*cases, *(with_submission(context, replace(view, **each)) for each in others)]


class TestPolicyDigest(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return PolicyDigest

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        view, context = given
        return [
            with_row(given, 1, policy_digest=bytes(32)),
            with_row(given, 2, policy_version=2),
            with_row(given, 2, submission=2),
            with_submission(context, replace(view, policy_digest="00" * 32)),
            with_submission(context, replace(view, metadata={**view.metadata, "run_id": "x"})),
            with_submission(context, replace(view, metadata=None)),
        ]


class TestAssignment(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return Assignment

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        view, context = given
        return [
            with_row(given, 0, task_id="t9"),
            with_row(given, 3, sampling_seed=7),
            with_row(given, 3, length_budget=8),
            with_row(given, 4, prompt_tokens=[5, 6, 9]),
            with_row(given, 4, environment="other"),
            with_row(given, 5, temperature=0.5),
            with_row(given, 6, max_tokens=9),
            with_row(given, 7, sample=0),
            with_row(given, 7, completion_tokens=[], completion_mask=[], score_status="error"),
            with_submission(context, replace(view, rows=view.rows[:-1])),
            with_submission(context, replace(view, groups=9)),
        ]

    def test_a_prompt_that_only_the_node_could_not_make_drops_the_group(self):
        given = with_row(
            toy_submission(), 0, prompt_tokens=[], score_status="error", score=None, reward=None
        )
        (found,) = Assignment().check(*given)
        assert (found.severity, found.row) == ("drop", 0)

    def test_a_prompt_that_our_own_host_could_not_make_puts_the_file_off(self):
        view, context = toy_submission()
        first = replace(context.assigned[0], prompt_tokens=(), failure="render: it is away")
        context.assigned = (replace(first, host_failed=True), *context.assigned[1:])
        with pytest.raises(HostError, match="it is away"):
            Assignment().check(view, context)
        context.assigned = (first, *context.assigned[1:])
        assert {each.severity for each in Assignment().check(view, context)} == {"reject"}

    def test_where_the_nodes_host_failed_too_there_is_nothing_to_wait_for(self):
        given = toy_submission()
        failed = {"score_status": "error", "score": None, "reward": None, "prompt_tokens": []}
        for index in range(4):
            given = with_row(given, index, **failed)
        first = replace(given[1].assigned[0], prompt_tokens=(), failure="x", host_failed=True)
        given[1].assigned = (first, *given[1].assigned[1:])
        assert Assignment().check(*given) == []

    def test_excuses_hide_nothing_that_follows_them(self):
        given = toy_submission(groups=4)
        for index in range(8):
            given = with_row(
                given,
                index,
                prompt_tokens=[],
                score_status="error",
                score=None,
                reward=None,
            )
        given = with_row(given, 14, sampling_seed=7)
        assert Assignment().check(*given)[0].severity == "slash"

    def test_another_version_than_the_announced_one_slashes_nobody(self):
        given = with_row(toy_submission(), 3, sampling_seed=7)
        view, context = given
        rows = tuple(replace(row, policy_version=2) for row in view.rows)
        (found,) = Assignment().check(*with_submission(context, replace(view, rows=rows)))
        assert found.severity == "reject"

    def test_another_task_is_a_choice_and_slashes(self):
        (found,) = Assignment().check(*with_row(toy_submission(), 0, task_id="t9"))
        assert found.severity == "slash"


class TestBounds(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Bounds(BoundsParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        logprobs = given[0].rows[0].completion_logprobs
        return [
            with_row(given, 0, score=1.5),
            with_row(given, 0, reward=float("nan")),
            with_row(given, 0, reward_parts={"task": 1e9}),
            with_row(given, 0, score_status="invalid_output", score=1.0),
            with_row(given, 0, completion_tokens=[99]),
            with_row(given, 0, prompt_tokens=[1] * 17),
            with_row(given, 0, completion_mask=[True] * (MAX_TOKENS + 1)),
            with_row(given, 0, completion_logprobs=[-90.0, *logprobs[1:]]),
            with_row(given, 0, turn_ends=[1, 2, 3, 4, 5]),
            with_row(given, 0, environment="other"),
        ]


@pytest.mark.parametrize("check", [Identity(), PolicyDigest()])
def test_a_store_that_is_away_is_nobodys_fault(check):
    view, context = toy_submission()

    def away(*_):
        raise StoreError("connection reset")

    context.statement = context.seal = away
    with pytest.raises(StoreError):
        check.check(view, context)


def test_a_version_that_is_not_sealed_is_refused_without_its_seal():
    view, context = toy_submission()
    context.newest_version = 2
    assert [f.severity for f in PolicyDigest().check(view, context)] == ["reject"]


def test_costly_checks_look_at_the_rows_of_the_context_alone():
    view, context = with_row(toy_submission(groups=4), 0, reward=0.5)
    context.rows = range(4, 8)
    assert list(Rewards(RewardsParams()).check(view, context)) == []
    context.rows = range(4)
    assert list(Rewards(RewardsParams()).check(view, context))
