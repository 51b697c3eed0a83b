"""The engine object: a stream of requests in, answers out as they come, bounded in flight.

Made by `plugin.make`. It speaks messages and text (capabilities: no token ids, no hidden states, no
seeds that can be checked), so its generations have no tokens and no log-probabilities.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, NoReturn

import httpx

from prime_core.api import (
    EngineCapabilities,
    EngineError,
    Generation,
    GenerationRequest,
    PolicyFiles,
    Prefill,
    PrefillRequest,
)
from prime_core.engines.openai.endpoint import Endpoint, GaveUp
from prime_core.engines.openai.plugin import OpenAIParams

SEED_BITS = 31  # servers read signed 32-bit seeds at least


class OpenAIEngine:
    """Implements `prime_core.api.InferenceEngine` with an OpenAI-compatible endpoint."""

    def __init__(self, params: OpenAIParams) -> None:
        self.params = params
        self.endpoint = Endpoint(params)
        self._client: httpx.AsyncClient | None = None
        self._places: asyncio.Semaphore | None = None
        self._streams = 0
        self._working: dict[str, set[asyncio.Task[None]]] = {}

    @property
    def capabilities(self) -> EngineCapabilities:
        """Text only: no tokens, no hidden states, and a seed is only a wish."""
        return EngineCapabilities(
            name="openai",
            fingerprint=f"openai;{self.params.base_url};{self.params.model}",
            hidden_states=False,
            seeded_sampling=False,
            token_ids=False,
        )

    def load(self, policy: PolicyFiles) -> bytes:
        """An endpoint has weights of its own.

        Raises:
            EngineError: always.
        """
        self._refuse("load a policy")

    def prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        """An endpoint shows no log-probabilities of given tokens.

        Raises:
            EngineError: always.
        """
        self._refuse("prefill tokens")

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        """Answer a stream; each request's `messages` are sent, its token ids aren't looked at.

        Answers come in the order in which they arrive. A request that fails in all its tries comes
        back with `failure`.

        Raises:
            EngineError: no request can succeed, e.g. a wrong key; or a request has no messages.
        """
        answers: asyncio.Queue[Generation | Exception | None] = asyncio.Queue()
        self._open_stream()
        feeder = asyncio.create_task(self._feed(requests, answers))
        try:
            while (found := await answers.get()) is not None:
                if isinstance(found, Exception):
                    raise found
                yield found
        finally:
            # Its reader may be cancelled again by now; connections must end all the same.
            ending = asyncio.ensure_future(self._end_stream(feeder))
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending
                raise

    def cancel(self, group_id: str) -> None:
        """End the group's requests under way; they come back with finish reason cancelled."""
        for task in self._working.get(group_id, ()):
            task.cancel()

    def close(self) -> None:
        """Nothing is kept: connections end with the last stream."""

    async def _feed(
        self,
        requests: AsyncIterator[GenerationRequest],
        answers: asyncio.Queue[Generation | Exception | None],
    ) -> None:
        """Start every request of the stream; ends the queue with None or what went wrong."""
        tasks: list[asyncio.Task[None]] = []
        try:
            async for request in requests:
                task = asyncio.create_task(self._answer(request, answers))
                group = self._working.setdefault(request.group_id, set())
                group.add(task)
                task.add_done_callback(group.discard)
                task.add_done_callback(partial(_answer_unbegun, request.id, answers))
                tasks.append(task)
            if tasks:
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                for task in ended:
                    if not task.cancelled():
                        task.result()
            answers.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - the reader of the stream raises it
            answers.put_nowait(error)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(
        self, request: GenerationRequest, answers: asyncio.Queue[Generation | Exception | None]
    ) -> None:
        assert self._client is not None
        assert self._places is not None
        try:
            async with self._places:
                found = await self.endpoint.chat(self._client, self._body(request))
        except GaveUp as error:
            answers.put_nowait(Generation(request.id, (), (), "stop", failure=str(error)))
        except asyncio.CancelledError:
            answers.put_nowait(Generation(request.id, (), (), "cancelled"))
        else:
            answers.put_nowait(
                Generation(
                    request.id,
                    (),
                    (),
                    "length" if found.finish_reason == "length" else "stop",
                    text=found.text,
                    usage=found.usage,
                )
            )

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        if not request.messages:
            raise EngineError(
                "a request without messages: an endpoint can't be given token ids",
                where=f"request {request.id}",
                fix="use this engine for `prime-core eval` and `profile`",
            )
        return {
            **self.params.extra,
            "model": self.params.model,
            "messages": [
                {"role": message.role, "content": message.content} for message in request.messages
            ],
            "temperature": request.temperature,
            self.params.token_field: request.max_tokens,
            "seed": request.seed % (1 << SEED_BITS),
        }

    def _open_stream(self) -> None:
        if not self._streams:
            self._client = self.endpoint.client()
            self._places = asyncio.Semaphore(self.params.concurrency)
        self._streams += 1

    async def _end_stream(self, feeder: asyncio.Task[None]) -> None:
        feeder.cancel()
        await asyncio.gather(feeder, return_exceptions=True)
        self._streams -= 1
        if not self._streams and self._client is not None:
            client, self._client = self._client, None
            self._working.clear()
            await client.aclose()

    def _refuse(self, what: str) -> NoReturn:
        raise EngineError(
            f"an endpoint can't {what}: it serves weights of its own, as text",
            where=f"engine openai, {self.params.base_url}",
            fix="use the engine transformers, or measure this one with `prime-core eval`",
        )


def _answer_unbegun(
    name: str, answers: asyncio.Queue[Generation | Exception | None], task: asyncio.Task[None]
) -> None:
    """A task that is cancelled before its first step never runs: nobody else answers for it."""
    if task.cancelled():
        answers.put_nowait(Generation(name, (), (), "cancelled"))
