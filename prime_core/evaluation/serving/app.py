"""The ASGI application: routes, bodies, server-sent events, and errors in OpenAI's shape.

Made by `opening` for the server. Invariant: a client that goes away takes its work with it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from prime_core.api import PrimeError
from prime_core.evaluation.serving.answers import Answer, ChatForm, CompletionForm, Form
from prime_core.evaluation.serving.bodies import ChatBody, CompletionBody, Sampled, read_body
from prime_core.evaluation.serving.desk import Desk
from prime_core.evaluation.serving.jobs import Job, chat_job, completion_job
from prime_core.evaluation.serving.refusals import Refused

MAX_BODY = 16 << 20

Kind = TypeVar("Kind", bound=Sampled)

logger = logging.getLogger(__name__)


class Endpoint:
    """The handlers.

    Args:
        api_key: what clients must show; "" asks for none.
        loopback: only clients that call this machine by a loopback name are answered, so that no
            web page can reach it under a name of its own.
    """

    def __init__(self, desk: Desk, *, api_key: str = "", loopback: bool = True) -> None:
        self._desk = desk
        self._api_key = api_key
        self._loopback = loopback

    async def health(self, request: Request) -> Response:
        """GET /health: the model is loaded."""
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        self._guard(request)
        return JSONResponse({"object": "list", "data": [self._card()]})

    async def model(self, request: Request) -> Response:
        """GET /v1/models/NAME."""
        self._guard(request)
        self._desk.check_model(request.path_params["name"])
        return JSONResponse(self._card())

    async def completions(self, request: Request) -> Response:
        """POST /v1/completions."""
        body = await self._body(request, CompletionBody)
        if body.best_of not in (None, body.n):
            raise Refused("best_of: it must be n", param="best_of")
        return await self._answer(request, body, completion_job(self._desk, body), CompletionForm())

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        body = await self._body(request, ChatBody)
        return await self._answer(request, body, chat_job(self._desk, body), ChatForm())

    def _card(self) -> dict[str, Any]:
        facts = self._desk.facts
        return {
            "id": facts.name,
            "object": "model",
            "created": self._desk.created,
            "owned_by": "prime-core",
            "max_model_len": facts.context,
        }

    def _guard(self, request: Request) -> None:
        host = request.headers.get("host", "")
        if self._loopback and not _is_loopback(host):
            raise Refused(f"this server isn't called {host!r}", status=403)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._api_key and not hmac.compare_digest(given.encode(), self._api_key.encode()):
            raise Refused("a wrong API key, or none", status=401, code="invalid_api_key")

    async def _body(self, request: Request, kind: type[Kind]) -> Kind:
        self._guard(request)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused("send JSON, with Content-Type: application/json", status=415)
        data = bytearray()
        async for piece in request.stream():
            data += piece
            if len(data) > MAX_BODY:
                raise Refused(f"the body is longer than {MAX_BODY} bytes", status=413)
        body = read_body(bytes(data), kind)
        self._desk.check_model(body.model)
        return body

    async def _answer(self, request: Request, body: Sampled, job: Job, form: Form) -> Response:
        answer = Answer(self._desk, form)
        if body.stream:
            usage = body.stream_options is not None and body.stream_options.include_usage
            return StreamingResponse(_events(job, answer, usage), media_type="text/event-stream")
        work = asyncio.ensure_future(job.run())
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientDisconnect
            await work
        finally:
            for task in (work, gone):
                task.cancel()
        return JSONResponse(answer.whole(job))


def _is_loopback(host: str) -> bool:
    """Whether a Host header names this machine alone."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


async def _gone(request: Request) -> None:
    """Returns when the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(job: Job, answer: Answer, usage: bool) -> AsyncIterator[str]:
    """Server-sent events of a job. With log-probabilities, which are computed at a choice's end,
    its text comes then and at once."""
    form = answer.form
    for choice in job.choices:
        first = form.opening(choice)
        if first is not None and (choice.wish.alternatives is None or form.prefix == "chatcmpl"):
            yield _event(answer.chunk(first))
    try:
        async for choice, text, ended in job.pieces():
            late = choice.wish.alternatives is not None
            if ended:
                last = form.whole(choice).get("text", choice.text) if late else ""
                yield _event(answer.chunk(form.ending(choice, last)))
            elif not late:
                yield _event(answer.chunk(form.piece(choice, text)))
    except PrimeError as error:
        yield _event(_as_refused(error).body())
        return
    if usage:
        yield _event(answer.usage(job))
    yield "data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _as_refused(error: PrimeError) -> Refused:
    if isinstance(error, Refused):
        return error
    logger.error("%s", error)
    return Refused(error.what, status=500)


async def _on_prime_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, PrimeError)
    refused = _as_refused(error)
    return JSONResponse(refused.body(), refused.status)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path}: {error.detail.lower()}"
    refused = Refused(what, status=error.status_code)
    return JSONResponse(refused.body(), refused.status, headers=error.headers)


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it


async def _on_error(request: Request, error: Exception) -> Response:
    refused = Refused("the server failed; its log says how", status=500)
    return JSONResponse(refused.body(), 500)


def make_app(desk: Desk, *, api_key: str = "", loopback: bool = True) -> Starlette:
    """The application; starts and stops the desk with the server."""
    endpoint = Endpoint(desk, api_key=api_key, loopback=loopback)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        desk.start()
        try:
            yield
        finally:
            await desk.stop()

    return Starlette(
        routes=[
            Route("/health", endpoint.health),
            Route("/v1/models", endpoint.models),
            Route("/v1/models/{name:path}", endpoint.model),
            Route("/v1/completions", endpoint.completions, methods=["POST"]),
            Route("/v1/chat/completions", endpoint.chat, methods=["POST"]),
        ],
        exception_handlers={
            PrimeError: _on_prime_error,
            HTTPException: _on_http_error,
            ClientDisconnect: _on_disconnect,
            Exception: _on_error,
        },
        lifespan=lifespan,
    )
