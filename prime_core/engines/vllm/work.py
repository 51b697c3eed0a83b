"""What the engine asks of the child, and what has come back so far.

Shared by the event loop, which makes it and awaits its end, and the driver's thread, which fills
it.
Invariant: a piece of work ends once, with a result or an error.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prime_core.api import Generation, GenerationRequest, Prefill, PrefillRequest

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class Generating:
    """One request while it is generated.

    Attributes:
        key: its name in messages.
        wants_rows: whether hidden states are sent.
        keeps_rows: whether they are part of the generation.
        done: called once, in the driver's thread.
        rows: [n, D] blocks in order, where they are kept.
        pending: rows that the commitment hasn't got yet, at most one interval of them.
        cancelled: nobody wants more of it; it isn't asked for again after a restart.
    """

    key: str
    request: GenerationRequest
    wants_rows: bool
    keeps_rows: bool
    done: Callable[[Generation | BaseException], None]
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    rows: list[torch.Tensor] = field(default_factory=list)
    pending: list[torch.Tensor] = field(default_factory=list)
    feeding: list[Future[None]] = field(default_factory=list)
    cancelled: bool = False

    def message(self) -> dict[str, Any]:
        """What the child is told; after a restart, the rest of it.

        Noise belongs to the position, so that a sequence that goes on is the one that would have
        been.
        """
        request, count = self.request, len(self.tokens)
        return {
            "key": self.key,
            "tokens": [*request.token_ids, *self.tokens],
            "seed": request.seed,
            "position": request.position + count,
            "max_tokens": request.max_tokens - count,
            "temperature": request.temperature,
            "wants_rows": self.wants_rows,
        }

    def generation(self, reason: str) -> Generation:
        """The finished generation."""
        hidden = None
        if self.keeps_rows:
            import numpy as np
            import torch

            hidden = (
                torch.cat(self.rows).float().numpy()
                if self.rows
                else np.zeros((0, 0), dtype=np.float32)
            )
        return Generation(
            id=self.request.id,
            token_ids=tuple(self.tokens),
            logprobs=tuple(self.logprobs),
            finish_reason=reason,  # type: ignore[arg-type]
            hidden_states=hidden,
        )


@dataclass(slots=True)
class Prefilling:
    """One sequence while it is prefilled."""

    key: str
    request: PrefillRequest
    result: Future[Prefill] = field(default_factory=Future)
    cancelled: bool = False

    def message(self) -> dict[str, Any]:
        """What the child is told."""
        request = self.request
        return {
            "key": self.key,
            "tokens": list(request.token_ids),
            "start": request.start,
            "temperature": request.temperature,
            "top": request.top,
            "seed": None if request.seed is None else str(request.seed),
            "positions": list(request.positions),
        }
