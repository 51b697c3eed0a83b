"""A policy of a table of logits, sampled by the real seeded race; no model.

`toy_submission` makes its rollouts with it. The same seed gives the same policy on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prime_core.api import RolloutView, RowPrefill
from prime_core.assignment import gumbel_argmax, gumbel_at

VOCABULARY = 24
EOS = 0


class ToyPolicy:
    """Logits that depend on the last token and the position, the same for the same seed."""

    def __init__(self, seed: int = 0, sharpness: float = 1.5) -> None:
        rng = np.random.default_rng(seed)
        self._table = rng.normal(size=(7, VOCABULARY, VOCABULARY)) * sharpness
        self._table[:, :, EOS] -= 1.0

    def logprobs(self, last: int, position: int) -> NDArray[np.float32]:
        """Log-softmax over the vocabulary, [V]."""
        logits = self._table[position % 7, last]
        shifted = logits - logits.max()
        found: NDArray[np.float32] = (shifted - np.log(np.exp(shifted).sum())).astype(np.float32)
        return found

    def sample(
        self, prompt: Sequence[int], seed: int, limit: int
    ) -> tuple[list[int], list[float], str]:
        """Tokens, log-probabilities and finish reason of one rollout."""
        last, tokens, logprobs = prompt[-1], [], []
        for position in range(limit):
            row = self.logprobs(last, position)
            last = int(gumbel_argmax(row[None], np.array([seed]), np.array([position]))[0])
            tokens.append(last)
            logprobs.append(float(row[last]))
            if last == EOS:
                return tokens, logprobs, "stop"
        return tokens, logprobs, "length"

    def prefill(self, row: RolloutView) -> RowPrefill:
        """What the policy says of a row's model tokens."""
        tokens = np.array(row.completion_tokens, dtype=np.int64)
        places = np.arange(tokens.size)
        before = [row.prompt_tokens[-1], *row.completion_tokens[:-1]]
        rows = np.array([self.logprobs(last, i) for i, last in enumerate(before)], dtype=np.float32)
        seeds = np.full(tokens.size, row.sampling_seed, dtype=np.int64)
        winners = gumbel_argmax(rows, seeds, places)
        values = rows.astype(np.float64)
        chances = np.exp(values)
        means = (chances * values).sum(axis=1)
        best = values[places, winners] + gumbel_at(seeds, places, winners)
        mine = values[places, tokens] + gumbel_at(seeds, places, tokens)
        own = values[places, tokens][:, None]
        return RowPrefill(
            logprobs=values[places, tokens],
            means=means,
            variances=(chances * (values - means[:, None]) ** 2).sum(axis=1),
            race_gaps=np.maximum(0.0, best - mine),
            lower=(chances * (values < own)).sum(axis=1),
            upper=(chances * (values <= own)).sum(axis=1),
        )
