"""The model behind the endpoint: its engine, its tokenizer, its limits, and the waiting lines.

Made once by `opening`, used by every request. Invariant: the engine is asked for nothing that it
must refuse, so that no client's request fails another's batch.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prime_core.api import (
    Generation,
    GenerationRequest,
    InferenceEngine,
    Message,
    Prefill,
    PrefillRequest,
    RunError,
)
from prime_core.engines.chat import ChatFormat
from prime_core.evaluation.serving.batches import Answer, generate_each
from prime_core.evaluation.serving.lines import Line
from prime_core.evaluation.serving.refusals import Refused


@dataclass(frozen=True)
class ModelFacts:
    """What the endpoint says of the model, and what it holds requests to.

    Attributes:
        name: as clients call it.
        context: tokens of prompt and completion together; None where the model has no limit.
        vocabulary: token ids are below it.
        max_tokens: of one completion, whatever a client asks for; None without a limit.
    """

    name: str
    context: int | None
    vocabulary: int
    max_tokens: int | None = None


class Desk:
    """Answers requests with one loaded model.

    Args:
        engine: with the model's weights loaded.
        tokenizer: of the model.
        batch_size: of the engine.
        most_waiting: completions that may wait before clients are told to come back.
    """

    def __init__(
        self,
        engine: InferenceEngine,
        tokenizer: Any,
        facts: ModelFacts,
        *,
        batch_size: int,
        most_waiting: int = 1024,
    ) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.facts = facts
        self.created = int(time.time())
        self.most_waiting = most_waiting
        self.generations: Line[GenerationRequest, Generation] = Line(self._generate, batch_size)
        self.prefills: Line[PrefillRequest, Prefill] = Line(self._prefill, batch_size)
        self._workers: list[asyncio.Task[None]] = []
        self._chat: ChatFormat | None = None

    def start(self) -> None:
        """Begin to answer; inside of the event loop."""
        self._workers = [
            asyncio.create_task(line.work()) for line in (self.generations, self.prefills)
        ]

    async def stop(self) -> None:
        """Stop the lines and the engine."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        await asyncio.to_thread(self.engine.close)

    def check_model(self, name: str) -> None:
        """Refuse another model's name."""
        if name != self.facts.name:
            raise Refused(
                f"the model {name!r} isn't served here; {self.facts.name!r} is",
                status=404,
                param="model",
                code="model_not_found",
            )

    def admit(self, completions: int) -> None:
        """Refuse what would make the line too long."""
        if completions > self.most_waiting:
            raise Refused(
                f"{completions} completions in one request, above {self.most_waiting}", param="n"
            )
        if self.generations.length + completions > self.most_waiting:
            raise Refused(
                f"{self.generations.length} completions wait already; try again later",
                status=429,
                code="rate_limit_exceeded",
            )

    def encode(self, prompt: str | tuple[int, ...]) -> tuple[int, ...]:
        """A prompt's tokens, with those that the tokenizer puts before a text.

        Raises:
            Refused: none, or one that the model doesn't have.
        """
        tokens = tuple(self.tokenizer.encode(prompt)) if isinstance(prompt, str) else prompt
        if not tokens:
            raise Refused("prompt: it has no tokens", param="prompt")
        strange = [token for token in tokens if not 0 <= token < self.facts.vocabulary]
        if strange:
            raise Refused(
                f"prompt: token {strange[0]} isn't within 0..{self.facts.vocabulary - 1}",
                param="prompt",
            )
        return tokens

    def encode_chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of a conversation up to where the model begins to speak.

        Raises:
            Refused: the model has no chat template, or its template refuses the messages.
        """
        try:
            if self._chat is None:
                self._chat = ChatFormat(self.tokenizer)
            return self._chat.prompt_tokens(messages)
        except RunError as error:
            raise Refused(error.what, param="messages") from error

    def room(self, prompt: tuple[int, ...], wanted: int | None) -> int:
        """The token limit of a completion after this prompt; all there is where none is wanted.

        Raises:
            Refused: there is no such room.
        """
        most = self.facts.max_tokens
        if most is not None and wanted is not None and wanted > most:
            raise Refused(f"max_tokens: at most {most} here", param="max_tokens")
        context = self.facts.context
        if context is None:
            return wanted if wanted is not None else most or 1024
        left = context - len(prompt)
        if left < (1 if wanted is None else wanted):
            raise Refused(
                f"the model's context has {context} tokens; the prompt takes {len(prompt)} of them "
                f"and the completion {1 if wanted is None else wanted}",
                param="max_tokens" if left > 0 else "messages",
                code="context_length_exceeded",
            )
        return wanted if wanted is not None else min(left, most or left)

    def token_text(self, token: int) -> str:
        """One token as text; `token_id:N` where it's a piece of a character."""
        text: str = self.tokenizer.decode([token], clean_up_tokenization_spaces=False)
        return f"token_id:{token}" if "\ufffd" in text else text

    async def _generate(self, requests: Sequence[GenerationRequest]) -> list[Answer]:
        return await generate_each(self.engine, requests)

    async def _prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        return await asyncio.to_thread(self.engine.prefill, requests)


def sampling_seed(seed: int, prompt: int, choice: int) -> int:
    """The 63-bit seed of one choice: the same request with the same seed draws the same noise."""
    text = f"prime-core/serve/1\0{seed}\0{prompt}\0{choice}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
