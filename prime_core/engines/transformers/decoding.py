"""Generates one batch: prefill once per distinct prompt, then one token a step for all rows.

Called by `engine` for each batch. What a batch computes depends on its requests alone, never on
time: rows leave the batch at points that their own tokens decide, and a cancelled row keeps its
place until nobody needs the batch, so that cancelling one group changes no bit of another.

Legend: B rows, P distinct prompts, T prompt tokens, V vocabulary, D hidden width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from prime_core.api import Generation, GenerationRequest
from prime_core.engines.transformers.cache import new_cache
from prime_core.engines.transformers.race import choose_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prime_core.engines.transformers.committing import Committer
    from prime_core.engines.transformers.forward import Forward


@dataclass(slots=True)
class _Row:
    """One request while it is generated."""

    request: GenerationRequest
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    hidden_D: list[torch.Tensor] = field(default_factory=list)
    finish: str = ""

    def generation(self, keep_hidden: bool) -> Generation:
        hidden = None
        if keep_hidden:
            hidden = (
                torch.stack(self.hidden_D).float().numpy()
                if self.hidden_D
                else np.zeros((0, 0), dtype=np.float32)
            )
        return Generation(
            id=self.request.id,
            token_ids=tuple(self.tokens),
            logprobs=tuple(self.logprobs),
            finish_reason=self.finish or "cancelled",  # type: ignore[arg-type]
            hidden_states=hidden,
        )


class _Batch:
    """The rows that still hold a place in the model's batch, as arrays."""

    def __init__(self, rows: list[_Row]) -> None:
        requests = [row.request for row in rows]
        self.rows = rows
        self.seeds: NDArray[np.int64] = np.array([r.seed for r in requests], dtype=np.int64)
        self.offsets: NDArray[np.int64] = np.array([r.position for r in requests], dtype=np.int64)
        temperatures = np.array([r.temperature for r in requests], dtype=np.float32)
        self.greedy: NDArray[np.bool_] = temperatures == 0
        self.divisors_B1 = torch.from_numpy(np.where(self.greedy, 1, temperatures))[:, None]
        self.plain = bool((self.divisors_B1 == 1).all())

    def logprobs(self, logits_BV: torch.Tensor) -> torch.Tensor:
        """Log-softmax under the sampling distribution, [B, V] float32."""
        logits_BV = logits_BV.float()
        return (logits_BV if self.plain else logits_BV / self.divisors_B1).log_softmax(dim=-1)


def generate_batch(
    forward: Forward,
    requests: Sequence[GenerationRequest],
    *,
    stop_ids: frozenset[int],
    keep_hidden: bool,
    cancelled: Callable[[str], bool],
    committer: Committer | None = None,
) -> list[Generation]:
    """Generate all requests together; generations come back in the order of the requests.

    Args:
        forward: the model.
        stop_ids: tokens that end a turn; the one that does is part of the generation.
        keep_hidden: return hidden states.
        cancelled: whether a group was cancelled; asked before every token.
        committer: feeds the requests' commitments; all have their rows when this returns.
    """
    rows = [_Row(request) for request in requests]
    state = _State(forward, _Batch(rows))
    step = 0
    while True:
        _mark_cancelled(state.batch.rows, cancelled)
        if all(row.finish for row in state.batch.rows):
            break
        tokens_B, logprobs_B = state.sample(step)
        hidden_BD = state.hidden_BD.cpu() if keep_hidden else None
        going_on = [row for row in state.batch.rows if not row.finish]
        if committer is not None:
            committer.collect(
                [row.request.commitment for row in state.batch.rows],
                state.hidden_BD,
                [bool(row.finish) for row in state.batch.rows],
            )
        _record(state.batch.rows, tokens_B, logprobs_B, hidden_BD)
        ended_B = np.array(
            [
                token in stop_ids or step + 1 >= row.request.max_tokens
                for row, token in zip(state.batch.rows, tokens_B.tolist(), strict=True)
            ]
        )
        _finish(state.batch.rows, tokens_B.tolist(), ended_B, stop_ids)
        _tell(going_on)
        state.ended |= ended_B
        step += 1
        if state.ended.all():
            break
        state.advance(tokens_B, step)
    if committer is not None:
        committer.finish()
    return [row.generation(keep_hidden) for row in rows]


class _State:
    """The model's side of a batch: cache, mask, and the logits of the next token."""

    def __init__(self, forward: Forward, batch: _Batch) -> None:
        self.forward = forward
        self.batch = batch
        prompts, row_prompt_B = _distinct([row.request.token_ids for row in batch.rows])
        room = max(row.request.max_tokens for row in batch.rows)
        ids_PT, mask_PT, self._lengths = left_pad(prompts)
        self._cache = new_cache(forward.config, room)
        logits_PV, hidden_PD = forward.next_token(
            ids_PT, mask_PT, position_ids(mask_PT), self._cache
        )
        pick_B = torch.tensor(row_prompt_B)
        if len(prompts) < len(batch.rows):
            self._cache.batch_select_indices(pick_B)
        self.logits_BV, self.hidden_BD = logits_PV[pick_B], hidden_PD[pick_B]
        self._lengths = self._lengths[pick_B]
        self._width = ids_PT.shape[1]
        ones = torch.ones((len(batch.rows), room), dtype=mask_PT.dtype)
        self._mask = torch.cat([mask_PT[pick_B], ones], dim=1)
        self.ended: NDArray[np.bool_] = np.zeros(len(batch.rows), dtype=np.bool_)

    def sample(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The next token of every row and its log-probability, [B] and [B]."""
        batch = self.batch
        logprobs_BV = batch.logprobs(self.logits_BV)
        tokens_B = choose_tokens(logprobs_BV, batch.seeds, batch.offsets + step, batch.greedy)
        return tokens_B, logprobs_BV.gather(1, tokens_B[:, None])[:, 0]

    def advance(self, tokens_B: torch.Tensor, step: int) -> None:
        """Feed the tokens; when half the rows have ended, the others close up first."""
        alive = np.flatnonzero(~self.ended)
        if 2 * len(alive) <= len(self.ended):
            keep = torch.from_numpy(alive)
            self.batch = _Batch([self.batch.rows[index] for index in alive])
            self._cache.batch_select_indices(keep)
            self._mask, self._lengths = self._mask[keep], self._lengths[keep]
            self.ended = self.ended[alive]
            tokens_B = tokens_B[keep]
        positions_B = self._lengths + (step - 1)
        self.logits_BV, self.hidden_BD = self.forward.next_token(
            tokens_B[:, None],
            self._mask[:, : self._width + step],
            positions_B[:, None],
            self._cache,
        )


def _mark_cancelled(rows: list[_Row], cancelled: Callable[[str], bool]) -> None:
    for row in rows:
        if not row.finish and cancelled(row.request.group_id):
            row.finish = "cancelled"


def _record(
    rows: list[_Row],
    tokens_B: torch.Tensor,
    logprobs_B: torch.Tensor,
    hidden_BD: torch.Tensor | None,
) -> None:
    for index, (row, token, logprob) in enumerate(
        zip(rows, tokens_B.tolist(), logprobs_B.tolist(), strict=True)
    ):
        if row.finish:
            continue
        row.tokens.append(token)
        row.logprobs.append(logprob)
        if hidden_BD is not None:
            row.hidden_D.append(hidden_BD[index])


def _finish(
    rows: list[_Row], tokens: list[int], ended_B: NDArray[np.bool_], stop_ids: frozenset[int]
) -> None:
    for index in np.flatnonzero(ended_B):
        row = rows[index]
        if not row.finish:
            row.finish = "stop" if tokens[index] in stop_ids else "length"


def _tell(rows: list[_Row]) -> None:
    for row in rows:
        if row.request.on_token is not None:
            row.request.on_token(row.tokens[-1], row.finish)


def _distinct(
    sequences: Sequence[tuple[int, ...]],
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Distinct sequences in order of first appearance, and for each sequence its index there."""
    seen: dict[tuple[int, ...], int] = {}
    indices = [seen.setdefault(sequence, len(seen)) for sequence in sequences]
    return list(seen), indices


def left_pad(
    sequences: Sequence[Sequence[int]],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids [P, T], mask [P, T] from lengths (never from token values), and lengths [P]; int64."""
    width = max(len(sequence) for sequence in sequences)
    ids: NDArray[np.int64] = np.zeros((len(sequences), width), dtype=np.int64)
    mask: NDArray[np.int64] = np.zeros((len(sequences), width), dtype=np.int64)
    for index, sequence in enumerate(sequences):
        ids[index, width - len(sequence) :] = sequence
        mask[index, width - len(sequence) :] = 1
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return torch.from_numpy(ids), torch.from_numpy(mask), lengths


def position_ids(mask_PT: torch.Tensor) -> torch.Tensor:
    """Positions that count real tokens only, [P, T]; 0 under padding."""
    return (mask_PT.cumsum(dim=1) - 1).clamp(min=0)
