"""Requests held against the model before it sees them: their lengths, tokens, temperatures, seeds.

Used by the engines that compute. One bad request mustn't cost the batch around it, and vLLM dies of
a token that it has no row for, or of a seed that doesn't fit its word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_core.api import EngineError, GenerationRequest, PrefillRequest

# Logits divided by less overflow a float32 sooner or later, and by more they are all the same; what
# is meant by either is 0, or another run.
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-6, 1e30
# Seeds are 63-bit words, positions 32-bit ones (docs/reference/seeds.md).
_SEEDS, _POSITIONS = 1 << 63, 1 << 32


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
        if not given or request.max_tokens < 1:
            raise EngineError(
                f"{given} prompt tokens, max_tokens {request.max_tokens}",
                where=where,
                fix="ask with a prompt and for at least one token",
            )
        _check_temperature(request.temperature, where)
        _check_seed(request.seed, where)
        _check_positions((request.position,), where)
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
        _check_temperature(request.temperature, "prefill")
        if request.seed is not None:
            _check_seed(request.seed, "prefill")
            counted = len(request.token_ids) - request.start
            if len(request.positions) != counted:
                raise EngineError(
                    f"{len(request.positions)} positions of {counted} tokens",
                    where="prefill",
                    fix="give the position of each token from start on",
                )
            _check_positions([max(0, each) for each in request.positions], "prefill")
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


def _check_temperature(temperature: float, where: str) -> None:
    if temperature != 0 and not MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE:
        raise EngineError(
            f"temperature {temperature}",
            where=where,
            fix=f"ask for 0, which is greedy, or from {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}",
        )


def _check_seed(seed: int, where: str) -> None:
    if not 0 <= seed < _SEEDS:
        raise EngineError(
            f"seed {seed} isn't within 63 bits", where=where, fix="ask with the assignment's seeds"
        )


def _check_positions(positions: Sequence[int], where: str) -> None:
    for position in (min(positions), max(positions)):
        if not 0 <= position < _POSITIONS:
            raise EngineError(
                f"position {position} isn't within 32 bits",
                where=where,
                fix="count the rollout's model tokens",
            )


def fit_of(config: Mapping[str, Any], context: int | None = None) -> Fit:
    """The limits of a model from the values of its config.json.

    Args:
        context: instead of the model's own.
    """
    own = config.get("text_config") or config  # several modalities: nested
    return Fit(context or own.get("max_position_embeddings"), own.get("vocab_size"))
