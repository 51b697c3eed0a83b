"""Who may ask the endpoint, and what the desk refuses before the engine hears of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from prime_core.api import Message, RunError
from prime_core.cli.serve import serve as serve_command
from prime_core.engines.chat import ChatFormat
from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tokenizer
from prime_core.evaluation.serving.app import make_app
from prime_core.evaluation.serving.desk import Desk, ModelFacts, sampling_seed
from prime_core.evaluation.serving.opening import Listening
from prime_core.evaluation.serving.refusals import Refused


def make_desk(tmp_path: Path, **facts: Any) -> Desk:
    tokenizer = build_tokenizer(tmp_path, chat_template=PLAIN_TEMPLATE)
    known = {"name": "tiny", "context": 32, "vocabulary": len(tokenizer), **facts}
    engine: Any = None
    return Desk(engine, tokenizer, ModelFacts(**known), batch_size=4, most_waiting=8)


def ask(desk: Desk, headers: Any, **options: Any) -> int:
    async def run() -> int:
        transport = httpx.ASGITransport(make_app(desk, **options))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/v1/models", headers=headers)).status_code

    return asyncio.run(run())


def test_a_key_is_asked_for_where_one_is_set(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    assert ask(desk, {}) == 200
    assert ask(desk, {}, api_key="sesame") == 401
    assert ask(desk, {"Authorization": "Bearer s\u00e9".encode()}, api_key="sesame") == 401
    assert ask(desk, {"Authorization": "Bearer sesame"}, api_key="sesame") == 200


@pytest.mark.parametrize("name", ["localhost:8000", "127.0.0.1", "127.1.2.3:80", "[::1]:8000"])
def test_loopback_names_are_answered(tmp_path: Path, name: str) -> None:
    assert ask(make_desk(tmp_path), {"Host": name}) == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", "["])
def test_a_page_cannot_reach_the_endpoint_under_its_own_name(tmp_path: Path, name: str) -> None:
    assert ask(make_desk(tmp_path), {"Host": name}) == 403
    assert ask(make_desk(tmp_path), {"Host": name}, loopback=False, api_key="") == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "192.168.1.4"])
def test_other_machines_need_a_key(host: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="api-key-file"):
        Listening(host).check()
    Listening(host, api_key="sesame").check()
    found = CliRunner().invoke(serve_command, ["--model", str(tmp_path), "--host", host])
    assert isinstance(found.exception, RunError)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.3.3.3"])
def test_this_machine_needs_none(host: str) -> None:
    Listening(host).check()


def test_the_room_of_a_completion(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, max_tokens=20)
    assert desk.room((1,) * 10, 15) == 15
    assert desk.room((1,) * 10, None) == 20
    assert desk.room((1,) * 20, None) == 12
    assert desk.room((1,) * 32, 0) == 0
    for prompt, wanted in ((10, 21), (30, 3), (32, None), (40, 0)):
        with pytest.raises(Refused, match="token"):
            desk.room((1,) * prompt, wanted)


def test_a_long_line_asks_clients_to_come_back(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    with pytest.raises(Refused, match="above 8"):
        desk.admit(9)
    desk.admit(8)


def test_a_template_that_refuses_is_the_clients_error(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    desk.tokenizer.chat_template = None
    with pytest.raises(Refused, match="no chat template"):
        desk.encode_chat([])


def test_the_template_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, read = make_desk(tmp_path), []

    def reading(tokenizer: Any) -> ChatFormat:
        read.append(tokenizer)
        return ChatFormat(tokenizer)

    monkeypatch.setattr("prime_core.evaluation.serving.desk.ChatFormat", reading)
    first = desk.encode_chat([Message("user", "a")])
    assert desk.encode_chat([Message("user", "a")]) == first
    assert read == [desk.tokenizer]


def test_seeds_of_choices_are_distinct_and_stable() -> None:
    seeds = {sampling_seed(7, prompt, choice) for prompt in range(9) for choice in range(9)}
    assert len(seeds) == 81
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert sampling_seed(7, 0, 0) == sampling_seed(7, 0, 0) != sampling_seed(-7, 0, 0)
