"""Checks that ask the policy keep the contract: honest files pass, others don't."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from prime_sanity_checks.logprobs import Logprobs, LogprobsParams
from prime_sanity_checks.replay import Replay, ReplayParams
from prime_sanity_checks.sampling import Sampling, SamplingParams
from prime_sanity_checks.termination import Termination, TerminationParams
from prime_sanity_checks.toploc import Toploc, ToplocParams
from sanity_checks_support import greedy, in_turn, longest, other_policy, with_tokens

from prime_core.testing.contract import SanityCheckContract
from prime_core.testing.toy_policy import EOS, ToyPolicy
from prime_core.testing.toy_submission import (
    MAX_TOKENS,
    toy_submission,
    with_row,
)


class TestTermination(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Termination(TerminationParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        index = longest(given)
        tokens = list(given[0].rows[index].completion_tokens)
        assert len(tokens) > 6
        return [
            with_tokens(given, index, tokens[:5], finish_reason="length"),
            with_tokens(given, index, tokens[:5], finish_reason="stop"),
            with_tokens(given, index, [*tokens[:4], EOS, 3, 4], finish_reason="stop"),
            with_tokens(given, index, [*tokens[:4], EOS], finish_reason="stop"),
            with_row(given, index, finish_reason="turns"),
        ]

    @pytest.mark.parametrize("answers", [True, False])
    @pytest.mark.parametrize("ended", [True, False])
    @pytest.mark.parametrize("max_turns", [1, 2])
    def test_turns_needs_an_end_token_an_environment_and_the_last_turn(
        self, answers, ended, max_turns
    ):
        given = toy_submission()
        index = next(
            i for i, row in enumerate(given[0].rows) if row.completion_tokens[-1] == EOS and i
        )
        tokens = list(given[0].rows[index].completion_tokens)
        view, context = with_tokens(
            given, index, tokens if ended else tokens[:-1], finish_reason="turns"
        )
        environments = frozenset({"toy"} if answers else ())
        context.run = replace(context.run, max_turns=max_turns, multi_turn=environments)
        found = Termination(TerminationParams()).check(view, context)
        assert bool(found) != (answers and ended and max_turns == 1)

    def test_several_turns_need_an_environment_that_answers(self):
        given = toy_submission()
        index = longest(given)
        row = given[0].rows[index]
        view, context = with_row(
            given,
            index,
            completion_mask=[True, False, *[True] * (len(row.completion_mask) - 2)],
            completion_tokens=[EOS, *row.completion_tokens[1:]],
            turn_ends=[1, len(row.completion_mask)],
        )
        found = Termination(TerminationParams()).check(view, context)
        assert any("never answers" in each.reason for each in found)


class TestLogprobs(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Logprobs(LogprobsParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        logprobs = given[0].rows[0].completion_logprobs
        return [
            with_row(given, 0, completion_logprobs=[0.0] * len(logprobs)),
            with_row(given, 0, completion_logprobs=[logprobs[0] - 0.3, *logprobs[1:]]),
            other_policy(),
        ]


class TestSampling(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Sampling(SamplingParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission(groups=8, group_size=8)
        index = longest(given)
        policy = given[1].policy
        poison = list(given[0].rows[index].completion_tokens)[:8]
        while len(poison) < 30:  # a passage that the policy would never say
            poison.append(int(np.argmin(policy.logprobs(poison[-1], len(poison))[1:])) + 1)
        return [with_tokens(given, index, poison), greedy(given), other_policy()]


class TestReplay(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Replay(ReplayParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        index = longest(given)
        policy, row = given[1].policy, given[0].rows[index]
        tokens, _, finish = policy.sample(row.prompt_tokens, 12345, MAX_TOKENS)
        best_of_many = with_tokens(given, index, tokens, finish_reason=finish)
        return [best_of_many, greedy(given), other_policy()]


class TestToploc(SanityCheckContract):
    @pytest.fixture
    def make_sanity_check(self):
        return lambda: Toploc(ToplocParams())

    @pytest.fixture
    def dishonest(self):
        given = toy_submission()
        proofs = given[0].rows[0].proofs
        return [
            with_row(given, 0, proofs=b""),
            with_row(given, 0, proofs=proofs + proofs),
            with_row(given, 0, proofs=bytes(len(proofs))),
            with_row(given, 0, completion_mask=[], completion_tokens=[]),
        ]


@pytest.mark.parametrize("check", [Replay(ReplayParams()), Sampling(SamplingParams())])
def test_honest_rollouts_pass(check):
    for seed in range(30):
        assert list(check.check(*toy_submission(seed=seed, policy=ToyPolicy(seed % 10)))) == []


def test_bimodal_text_is_found_by_its_shape_alone():
    given = in_turn(toy_submission(groups=4))
    assert list(Sampling(SamplingParams(shape_limit=1e9)).check(*given)) == []
    found = Sampling(SamplingParams()).check(*given)
    assert found
    assert all("bimodal" in each.reason for each in found)


class Answering:
    """The policy, each token's race lost by so many nats, or each log-probability off by them."""

    def __init__(self, policy, *, gap=0.0, off=0.0):
        self._policy, self._gap, self._off = policy, gap, off

    def prefill(self, row):
        found = self._policy.prefill(row)
        found.race_gaps[::10] += self._gap
        found.logprobs[:] -= self._off
        return found


def test_near_ties_that_pass_one_by_one_are_too_many_in_a_file():
    view, context = toy_submission(groups=4)
    context.policy = Answering(context.policy, gap=0.0009)
    (found,) = Replay(ReplayParams()).check(view, context)
    assert found.row is None
    assert "on average" in found.reason
    assert list(Replay(ReplayParams(file_loss=0.01)).check(view, context)) == []


def test_small_errors_of_all_log_probabilities_are_too_much_for_a_file():
    view, context = toy_submission(groups=4)
    context.policy = Answering(context.policy, off=0.001)
    (found,) = Logprobs(LogprobsParams()).check(view, context)
    assert found.row is None
    assert list(Logprobs(LogprobsParams(file_error=0.01)).check(view, context)) == []
