"""What tests of the checks change about an honest submission of a toy policy."""

from __future__ import annotations

import numpy as np

from prime_core.testing.toy_policy import EOS, ToyPolicy
from prime_core.testing.toy_submission import (
    MAX_TOKENS,
    toy_submission,
    with_row,
)


def with_tokens(given, index, tokens, **changes):
    """A row with other tokens, consistent in its lengths; log-probabilities are the policy's."""
    made = with_row(
        given,
        index,
        completion_tokens=tokens,
        completion_mask=[True] * len(tokens),
        completion_logprobs=[-1.0] * len(tokens),
        turn_ends=[len(tokens)],
        **changes,
    )
    prefill = made[1].policy.prefill(made[0].rows[index])
    return with_row(made, index, completion_logprobs=[min(0.0, float(v)) for v in prefill.logprobs])


def longest(given):
    return max(range(len(given[0].rows)), key=lambda index: given[0].rows[index].length)


def other_policy():
    """Rollouts of another policy, judged by the claimed one."""
    view, context = toy_submission(policy=ToyPolicy(seed=5))
    context.policy = ToyPolicy()
    return view, context


def greedy(given):
    policy = given[1].policy
    for index, row in enumerate(given[0].rows):
        last, tokens = row.prompt_tokens[-1], []
        while len(tokens) < MAX_TOKENS and last != EOS:
            last = int(np.argmax(policy.logprobs(last, len(tokens))))
            tokens.append(last)
        given = with_tokens(given, index, tokens)
    return given


def in_turn(given):
    """Likely and unlikely tokens in turn, so chosen that no sum of log-probabilities shows it."""
    policy = given[1].policy
    for index, row in enumerate(given[0].rows):
        last, tokens, balance = row.prompt_tokens[-1], [], 0.0
        while len(tokens) < MAX_TOKENS:
            logprobs = policy.logprobs(last, len(tokens)).astype(np.float64)
            expected = float(np.exp(logprobs) @ logprobs)
            order = [int(t) for t in np.argsort(logprobs) if t != EOS]
            # the likeliest, or a rare one where the likeliest ones have run ahead
            ahead = balance + logprobs[order[-1]] - expected
            rare = min(order, key=lambda t: abs(balance + logprobs[t] - expected))
            last = rare if ahead > 1.5 else order[-1]
            balance += float(logprobs[last]) - expected
            tokens.append(last)
        given = with_tokens(given, index, tokens, finish_reason="length")
    return given
