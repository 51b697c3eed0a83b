"""The engine `openai` against a server of our own: retries, bounds, secrets, what it can't do."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import EndpointServer, Reply, said, scripted
from pydantic import ValidationError

from prime_core.api import (
    ConfigError,
    EngineError,
    Generation,
    GenerationRequest,
    InferenceEngine,
    Message,
    PolicyFiles,
    RunError,
    Usage,
)
from prime_core.engines import check_trainable
from prime_core.engines.openai.endpoint import _retry_after
from prime_core.engines.openai.engine import OpenAIEngine
from prime_core.engines.openai.plugin import OpenAIParams
from prime_core.hub.kinds import missing_members
from prime_core.run.configuration import load_run_config

FAST = {"backoff_s": 0.001, "max_backoff_s": 0.01, "timeout_s": 30.0}


def request(name: str = "g/0", **fields: Any) -> GenerationRequest:
    values: dict[str, Any] = {
        "id": name,
        "group_id": name.partition("/")[0],
        "token_ids": (),
        "seed": 2**40 + 5,
        "position": 0,
        "max_tokens": 9,
        "temperature": 0.5,
        "messages": (Message("user", "2+2?"),),
    }
    return GenerationRequest(**(values | fields))


def generate(
    url: str,
    requests: Sequence[GenerationRequest],
    seen: Callable[[OpenAIEngine, Generation], None] = lambda engine, found: None,
    **params: Any,
) -> list[Generation]:
    engine = OpenAIEngine(
        OpenAIParams.model_validate({"base_url": url, "model": "toy", **FAST, **params})
    )

    async def feed() -> AsyncIterator[GenerationRequest]:
        for one in requests:
            yield one

    async def run() -> list[Generation]:
        found = []
        async for generation in engine.generate(feed()):
            seen(engine, generation)
            found.append(generation)
        return found

    return asyncio.run(run())


def one(answer: Callable[[dict[str, Any]], Reply], **params: Any) -> Generation:
    with EndpointServer(answer) as server:
        return generate(server.url, [request()], **params)[0]


def test_an_answer_is_text_with_its_usage_and_price() -> None:
    with EndpointServer(scripted(said("4", "length", prompt=1000, completion=200))) as server:
        found = generate(
            server.url,
            [request()],
            price_prompt=2.0,
            price_completion=10.0,
            extra={"reasoning_effort": "low"},
        )
    assert found == [
        Generation("g/0", (), (), "length", text="4", usage=Usage(1000, 200, 0.004)),
    ]
    assert server.bodies == [
        {
            "model": "toy",
            "messages": [{"role": "user", "content": "2+2?"}],
            "temperature": 0.5,
            "max_tokens": 9,
            "seed": 5,
            "reasoning_effort": "low",
        }
    ]


@pytest.mark.parametrize(
    "bad",
    [
        (429, {"retry-after": "0"}, {"error": {"message": "slow down"}}),
        (503, {}, b"<html>busy</html>"),
        (200, {}, {"error": {"message": "upstream died"}}),
        (200, {}, b"not json"),
    ],
)
def test_what_may_pass_is_tried_again(bad: Reply) -> None:
    with EndpointServer(scripted(bad, bad, said("4"))) as server:
        found = generate(server.url, [request()])
    assert (found[0].text, found[0].failure, len(server.bodies)) == ("4", "", 3)


def test_tries_end_and_the_others_go_on() -> None:
    def answer(body: dict[str, Any]) -> Reply:
        return (
            (500, {}, {"error": "broken"}) if body["messages"][0]["content"] == "x" else said("4")
        )

    bad = request("bad/0", messages=(Message("user", "x"),))
    with EndpointServer(answer) as server:
        found = {f.id: f for f in generate(server.url, [bad, request()], retries=2)}
    assert found["bad/0"].failure == "HTTP 500: broken (3 tries)"
    assert found["g/0"].text == "4"
    assert len(server.bodies) == 4


def test_a_server_that_doesnt_answer_is_left() -> None:
    held = threading.Event()

    def answer(body: dict[str, Any]) -> Reply:
        held.wait(30)
        return said("late")

    with EndpointServer(answer) as server:
        found = generate(server.url, [request()], retries=1, timeout_s=0.05)
        held.set()
    assert "no answer within 0.05 s" in found[0].failure
    lost = generate("http://127.0.0.1:9/v1", [request()], retries=0)
    assert "ConnectError" in lost[0].failure


def test_a_refused_request_isnt_tried_again() -> None:
    with EndpointServer(scripted((400, {}, {"error": {"message": "too long"}}))) as server:
        found = generate(server.url, [request()])
    assert found[0].failure == "HTTP 400: too long"
    assert len(server.bodies) == 1
    assert "filtered" in one(scripted(said("", "content_filter"))).failure
    assert "no choices" in one(scripted((200, {}, {"choices": []}))).failure


def test_a_wrong_key_ends_the_stream_and_is_never_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    key = "sk-very-secret-0123456789"
    refusal = (401, {}, {"error": {"message": f"Incorrect API key provided: {key}"}})
    with (
        EndpointServer(scripted(refusal)) as server,
        pytest.raises(EngineError, match=r"HTTP 401: Incorrect API key provided: \*+") as caught,
    ):
        generate(server.url, [request(), request("h/0")], api_key=key)
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
    params = OpenAIParams(base_url="http://x", model="m", api_key=key)  # type: ignore[arg-type]
    shown = f"{caught.value}{caught.value.args}{caplog.text}{params!r}{params.model_dump_json()}"
    assert key not in shown


def test_no_more_requests_are_under_way_than_allowed() -> None:
    def answer(body: dict[str, Any]) -> Reply:
        time.sleep(0.01)
        return said("4")

    with EndpointServer(answer) as server:
        found = generate(server.url, [request(f"g/{n}") for n in range(20)], concurrency=3)
    assert sorted(f.id for f in found) == sorted(f"g/{n}" for n in range(20))
    assert 1 <= server.most <= 3


def test_a_cancelled_group_comes_back_as_such() -> None:
    held = threading.Event()

    def answer(body: dict[str, Any]) -> Reply:
        if body["messages"][0]["content"] == "wait":
            held.wait(30)
        return said("4")

    def seen(engine: OpenAIEngine, found: Generation) -> None:
        engine.cancel("slow")

    slow = request("slow/0", messages=(Message("user", "wait"),))
    with EndpointServer(answer) as server:
        found = {f.id: f for f in generate(server.url, [slow, request()], seen)}
        held.set()
    assert found["slow/0"].finish_reason == "cancelled"
    assert found["g/0"].text == "4"


def test_retry_after_may_be_a_date() -> None:
    class Response:
        def __init__(self, value: str) -> None:
            self.headers = {"retry-after": value}

    assert _retry_after(Response("1.5")) == 1.5  # type: ignore[arg-type]
    later = _retry_after(Response(formatdate(time.time() + 1000)))  # type: ignore[arg-type]
    assert later is not None
    assert 900 < later <= 1000
    assert _retry_after(Response("soon")) is None  # type: ignore[arg-type]
    assert _retry_after(Response("nan")) is None  # type: ignore[arg-type]


def test_it_says_that_it_can_prove_nothing(tmp_path: Path) -> None:
    engine = OpenAIEngine(OpenAIParams(base_url="http://localhost:1/v1", model="toy"))
    assert missing_members(engine, [InferenceEngine]) == []
    capabilities = engine.capabilities
    assert not capabilities.token_ids
    assert not capabilities.hidden_states
    assert not capabilities.seeded_sampling
    with pytest.raises(RunError, match="openai returns no token ids"):
        check_trainable(engine)
    for refused in (
        lambda: engine.load(PolicyFiles(0, tmp_path, (), bytes(32))),
        lambda: engine.prefill([]),
    ):
        with pytest.raises(EngineError, match="weights of its own"):
            refused()
    with pytest.raises(EngineError, match="without messages"):
        generate("http://localhost:1/v1", [request(messages=(), token_ids=(1, 2))])


@pytest.mark.parametrize(
    "params",
    [
        {"base_url": "localhost:8000/v1", "model": "m"},
        {"base_url": "http://user:pass@host/v1", "model": "m"},
        {"base_url": "http://host/v1?key=1", "model": "m"},
        {"base_url": "http://host/v1", "model": "m", "extra": {"temperature": 0}},
    ],
)
def test_parameters_that_mislead_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        OpenAIParams.model_validate(params)


def test_a_run_with_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        f'[run]\ndir = "{tmp_path}/run"\n[model]\npath = "{tmp_path}"\n'
        '[engine]\nuse = "openai"\nwith = { base_url = "http://localhost:1/v1", model = "m" }\n'
        '[[environments]]\nuse = "arithmetic"\n'
    )
    with pytest.raises(ConfigError) as caught:
        load_run_config(path, check_files=False)
    assert "engine openai can't be trained with: an endpoint returns text" in str(caught.value)
    assert "prime-core eval" in str(caught.value)
