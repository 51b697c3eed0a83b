"""The tensors of one packed micro-batch.

`grpo.py` packs bundles; `model.py` computes on the result. T are the inputs, trunks before
branches; N are the trained tokens, each with the input row that predicts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prime_core.trainer.attention import BranchRun, Segments, TrunkRun
from prime_core.trainer.packing import Bundle, Rollout

Ints = NDArray[np.int64]


@dataclass(slots=True)
class MicroBatch:
    """Packed inputs [T] and what is known of the trained tokens [N].

    `old_N`, `reference_N` and `own_N` are filled by passes under other weights before training.

    Attributes:
        rows_N: the input whose output predicts the token; a shared prompt's last row predicts the
            first token of every rollout.
        weights_N: aggregation weight of the token, global over micro-batches and ranks.
        versions_N: policy version that chose the token.
    """

    inputs_T: Tensor
    positions_T: Tensor
    segments: Segments
    rows_N: Tensor
    targets_N: Tensor
    weights_N: Tensor
    advantages_N: Tensor
    engine_N: Tensor
    versions_N: Tensor
    old_N: Tensor = field(default_factory=lambda: torch.empty(0))
    reference_N: Tensor = field(default_factory=lambda: torch.empty(0))
    own_N: Tensor = field(default_factory=lambda: torch.empty(0))

    @property
    def mask_N(self) -> Tensor:
        """What the loss's interface calls mask: every token here is trained."""
        return torch.ones_like(self.rows_N, dtype=torch.bool)


@dataclass(slots=True)
class _Piece:
    """Tokens that stand together: a trunk, or a branch of one."""

    tokens: Ints
    position: int
    trunk: int = -1  # index among the trunks in packed order; -1 for a trunk itself
    start: int = 0


def pack(
    rollouts: Sequence[Rollout],
    bundles: Sequence[Bundle],
    weights: Sequence[float],
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> MicroBatch:
    """One micro-batch of whole bundles; none makes a dummy that trains nothing.

    Args:
        rollouts: all of the optimizer step; sequences of at least two tokens.
        bundles: which of them this micro-batch computes.
        weights: aggregation weight of the tokens of each of `rollouts`.
        dtype: of weights, advantages and log-probabilities.
    """
    pieces, parts = _lay_out(rollouts, bundles)
    members = [index for index, _ in parts]
    rows = [_rows(rollouts[index], own) for index, own in parts]
    counts = [len(one) for one in rows]

    def chosen(name: str) -> NDArray[np.generic]:
        values = [getattr(rollouts[i], name)[1:][rollouts[i].trained[1:]] for i in members]
        return np.concatenate(values) if values else np.zeros(0, np.int64)

    def repeated(values: Sequence[float]) -> NDArray[np.float64]:
        return np.repeat(np.asarray(values, np.float64), counts)

    def real(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values).to(device=device, dtype=dtype)

    def whole(values: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(values.astype(np.int64)).to(device)

    return MicroBatch(
        inputs_T=whole(np.concatenate([piece.tokens for piece in pieces])),
        positions_T=whole(
            np.concatenate([piece.position + np.arange(len(piece.tokens)) for piece in pieces])
        ),
        segments=_segments(pieces, device),
        rows_N=whole(np.concatenate([*rows, np.zeros(0, np.int64)])),
        targets_N=whole(chosen("token_ids")),
        weights_N=real(repeated([weights[i] for i in members])),
        advantages_N=real(repeated([rollouts[i].advantage for i in members])),
        engine_N=real(chosen("engine_logprobs")),
        versions_N=whole(repeated([rollouts[i].version for i in members])),
    )


def _lay_out(
    rollouts: Sequence[Rollout], bundles: Sequence[Bundle]
) -> tuple[list[_Piece], list[tuple[int, list[_Piece]]]]:
    """All pieces in packed order, and for each rollout its index and its pieces.

    Pieces are ordered so that equally long trunks, and equally long branches of equally long
    trunks, are neighbours.
    """
    heads: list[tuple[_Piece, Bundle]] = []
    for one in bundles:
        tokens = rollouts[one.members[0]].token_ids
        heads.append((_Piece(tokens[: one.shared or -1], 0), one))
    if not heads:
        heads.append((_Piece(np.zeros(1, np.int64), 0), Bundle((), 0, 1)))
    heads.sort(key=lambda pair: -len(pair[0].tokens))
    branches: list[_Piece] = []
    parts: list[tuple[int, list[_Piece]]] = []
    for place, (trunk, one) in enumerate(heads):
        for index in one.members:
            own = [trunk]
            rest = rollouts[index].token_ids[one.shared : -1] if one.shared else ()
            if len(rest):
                own.append(_Piece(np.asarray(rest), one.shared, trunk=place))
                branches.append(own[1])
            parts.append((index, own))
    branches.sort(key=lambda piece: (-piece.position, -len(piece.tokens)))
    pieces = [*(trunk for trunk, _ in heads), *branches]
    start = 0
    for piece in pieces:
        piece.start = start
        start += len(piece.tokens)
    return pieces, parts


def _rows(rollout: Rollout, pieces: Sequence[_Piece]) -> Ints:
    """The packed row that predicts each trained token of a rollout."""
    places = np.concatenate([piece.start + np.arange(len(piece.tokens)) for piece in pieces])
    assert len(places) == len(rollout.trained) - 1, "a row for every token but the first"
    rows: Ints = places[rollout.trained[1:]]
    return rows


def _segments(pieces: Sequence[_Piece], device: torch.device) -> Segments:
    """Neighbours of equal lengths, merged into runs."""
    trunks: list[TrunkRun] = []
    home: list[tuple[int, int]] = []  # run of each trunk, and its place in the run
    for length, same in groupby((p for p in pieces if p.trunk < 0), lambda p: len(p.tokens)):
        run = list(same)
        home += [(len(trunks), place) for place in range(len(run))]
        trunks.append(TrunkRun(run[0].start, length, len(run)))
    branches: list[BranchRun] = []
    grown = (piece for piece in pieces if piece.trunk >= 0)
    for (run_index, length), same in groupby(
        grown, lambda piece: (home[piece.trunk][0], len(piece.tokens))
    ):
        run = list(same)
        places = torch.tensor([home[piece.trunk][1] for piece in run], device=device)
        branches.append(BranchRun(run[0].start, length, len(run), run_index, places))
    return Segments(tuple(trunks), tuple(branches))
