"""One choice of an answer: asked of the engine, heard token by token, ended at its stop texts.

Made by `jobs`. Invariant: a choice is over once, by the engine's end, a stop text, an error, or
because nobody waits for it any more; in the last two cases the engine is told to stop.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from prime_core.api import Generation, GenerationRequest, Prefill, PrefillRequest
from prime_core.evaluation.serving.desk import Desk
from prime_core.evaluation.serving.refusals import Refused
from prime_core.evaluation.serving.texts import Decoder, StopFinder


@dataclass(frozen=True)
class Wish:
    """What is asked of one choice.

    Attributes:
        prompt: token ids, at least one.
        max_tokens: 0 generates nothing.
        seed: 63-bit.
        alternatives: tokens to name at each position; None without log-probabilities.
        echo: the answer begins with the prompt.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float
    seed: int
    stops: tuple[str, ...] = ()
    alternatives: int | None = None
    echo: bool = False


@dataclass
class Choice:
    """A choice while it is generated, and when it is over.

    Attributes:
        index: its place in the answer.
        tokens: what the model said, the token that ended its turn included.
        text: of the completion, without the prompt.
        finish: stop or length; "" while it goes on.
        prefill: log-probabilities of the prompt (with echo) and the completion, where wanted.
        listener: called with each piece of text.
    """

    desk: Desk
    index: int
    wish: Wish
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    finish: str = ""
    prefill: Prefill | None = None
    listener: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        self.id = uuid.uuid4().hex
        self._decoder = Decoder(self.desk.tokenizer, self.wish.prompt)
        self._finder = StopFinder(self.wish.stops)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked: asyncio.Future[Generation] | None = None

    @property
    def start(self) -> int:
        """The first token that has a log-probability in the answer: none precedes token 0."""
        return 1 if self.wish.echo else len(self.wish.prompt)

    async def run(self) -> None:
        """Generate, then compute what log-probabilities are wanted.

        Raises:
            PrimeError: the engine failed, or stops.
        """
        if self.wish.max_tokens:
            self._ask()
            await self._over
        else:
            self.finish = "length"
        if self.wish.alternatives is not None:
            whole = (*self.wish.prompt, *self.tokens)
            self.prefill = await self.desk.prefills.ask(
                PrefillRequest(whole, self.start, 1.0, self.wish.alternatives)
            )

    def leave(self) -> None:
        """Nobody waits any more: the engine may stop."""
        if self._asked is not None and not self._asked.done():
            self._asked.cancel()
            self.desk.engine.cancel(self.id)
        self._over.cancel()

    def _ask(self) -> None:
        loop = asyncio.get_running_loop()

        def on_token(token: int, finish: str) -> None:
            loop.call_soon_threadsafe(self._hear, token, finish)

        request = GenerationRequest(
            id=self.id,
            group_id=self.id,
            token_ids=self.wish.prompt,
            seed=self.wish.seed,
            position=0,
            max_tokens=self.wish.max_tokens,
            temperature=self.wish.temperature,
            on_token=on_token,
        )
        self._asked = asyncio.ensure_future(self.desk.generations.ask(request))
        self._asked.add_done_callback(self._answered)

    def _hear(self, token: int, finish: str) -> None:
        if self.finish or self._over.done():
            return
        self.tokens.append(token)
        piece = "" if finish == "stop" else self._finder.add(self._decoder.add(token))
        if not self._finder.found and finish:
            piece += self._finder.add(self._decoder.rest()) + self._finder.rest()
        if self._finder.found:
            # The batch goes on without this one.
            self.finish = "stop"
            self.desk.engine.cancel(self.id)
        else:
            self.finish = finish
        self.text += piece
        self.listener(piece)
        if self.finish:
            self._over.set_result(None)

    def _answered(self, asked: asyncio.Future[Generation]) -> None:
        """The engine's whole answer, for engines that don't tell each token."""
        if asked.cancelled():
            return
        error = asked.exception()
        if error is None:
            generation = asked.result()
            unheard = generation.token_ids[len(self.tokens) :]
            reason = generation.finish_reason
            for left, token in zip(range(len(unheard), 0, -1), unheard, strict=True):
                self._hear(token, "" if left > 1 or reason == "cancelled" else reason)
            if not self.finish:
                error = Refused("the server stops", status=503)
        if error is not None and not self._over.done():
            self._over.set_exception(error)
