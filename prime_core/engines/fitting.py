"""Requests held against the model before it sees them: their lengths, tokens and temperatures.

Used by the engines that compute. One bad request mustn't cost the batch around it, and vLLM dies of
a token that it has no row for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_core.api import EngineError, GenerationRequest, PrefillRequest


@dataclass(frozen=True, slots=True)
class Fit:
    """What a model can be asked.

    Attributes:
        context: positions of prompt and completion together; None where the model has no limit.
        vocabulary: token ids are below it; None where nothing says.
    """

    context: int | None
    vocabulary: int | None

    def check_generation(self, request: GenerationRequest) -> None:
        """Refuse what can't be generated.

        Raises:
            EngineError: names the request.
        """
        where = f"request {request.id}"
        given = len(request.token_ids)
        sound = math.isfinite(request.temperature) and request.temperature >= 0
        if not given or request.max_tokens < 1 or not sound:
            raise EngineError(
                f"{given} prompt tokens, max_tokens {request.max_tokens}, temperature "
                f"{request.temperature}",
                where=where,
                fix="ask with a prompt, at least one token and a temperature of 0 or more",
            )
        self._check_length(given + request.max_tokens, where)
        self._check_tokens(request.token_ids, where)

    def check_prefill(self, request: PrefillRequest) -> None:
        """Refuse what can't be recomputed.

        Raises:
            EngineError: the sequence doesn't fit.
        """
        if not 1 <= request.start < len(request.token_ids):
            raise EngineError(
                f"start {request.start} isn't within 1..{len(request.token_ids) - 1}",
                where="prefill",
                fix="ask for tokens that have at least one before them",
            )
        self._check_length(len(request.token_ids), "prefill")
        self._check_tokens(request.token_ids, "prefill")

    def _check_length(self, total: int, where: str) -> None:
        if self.context is not None and total > self.context:
            raise EngineError(
                f"{total} tokens exceed the context of {self.context}",
                where=where,
                fix="lower [engine] max_tokens or max_prompt_tokens, or raise max_model_len where "
                "the engine has it",
            )

    def _check_tokens(self, tokens: Sequence[int], where: str) -> None:
        if self.vocabulary is None:
            return
        for token in (min(tokens), max(tokens)):
            if not 0 <= token < self.vocabulary:
                raise EngineError(
                    f"token {token} is none of the model's {self.vocabulary}",
                    where=where,
                    fix="use the tokenizer and the model of one run",
                )


def fit_of(config: Mapping[str, Any], context: int | None = None) -> Fit:
    """The limits of a model from the values of its config.json.

    Args:
        context: instead of the model's own.
    """
    own = config.get("text_config") or config  # several modalities: nested
    return Fit(context or own.get("max_position_embeddings"), own.get("vocab_size"))
