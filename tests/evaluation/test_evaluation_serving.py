"""`prime-core serve` as a real process, asked by OpenAI's own client."""

from __future__ import annotations

import concurrent.futures
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from serving_support import serving, tiny_model

pytestmark = pytest.mark.integration

PROMPT = "what is 1+1?"
MESSAGES: Any = [{"role": "user", "content": "hello there"}]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = tiny_model(tmp_path_factory.mktemp("serving") / "tiny")
    with serving(model, "--batch-size", "8") as url:
        yield url


@pytest.fixture(scope="module")
def client(root: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=root, api_key="unused", max_retries=0) as made:
        yield made


def complete(client: openai.OpenAI, **options: Any) -> Any:
    return client.completions.create(**{"model": "tiny", "prompt": PROMPT, "seed": 5, **options})


def chat(client: openai.OpenAI, **options: Any) -> Any:
    asked = {"model": "tiny", "messages": MESSAGES, "seed": 5, "max_tokens": 12, **options}
    return client.chat.completions.create(**asked)


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [each.id for each in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "prime-core"
    with pytest.raises(openai.NotFoundError, match="isn't served here"):
        client.models.retrieve("large")


def test_a_seed_repeats_every_choice_and_choices_differ(client: openai.OpenAI) -> None:
    first, second = (complete(client, n=4, max_tokens=20) for _ in range(2))
    assert [each.text for each in first.choices] == [each.text for each in second.choices]
    assert len({each.text for each in first.choices}) > 1
    other = complete(client, n=4, max_tokens=20, seed=6)
    assert [each.text for each in other.choices] != [each.text for each in first.choices]


def test_temperature_zero_is_greedy_whatever_the_seed(client: openai.OpenAI) -> None:
    texts = {
        complete(client, temperature=0, seed=seed, max_tokens=20).choices[0].text
        for seed in range(3)
    }
    assert len(texts) == 1


def test_usage_counts_each_prompt_once_and_every_token_said(client: openai.OpenAI) -> None:
    found = complete(client, prompt=["ab", "cde"], n=3, max_tokens=4, temperature=0)
    assert found.usage.prompt_tokens == 5
    assert found.usage.completion_tokens <= 6 * 4
    assert found.usage.total_tokens == 5 + found.usage.completion_tokens
    assert [each.index for each in found.choices] == list(range(6))


def test_a_stream_says_what_the_whole_answer_says(client: openai.OpenAI) -> None:
    whole = chat(client, n=2)
    told: dict[int, str] = {0: "", 1: ""}
    ends: dict[int, str] = {}
    usage = None
    stream = chat(client, n=2, stream=True, stream_options={"include_usage": True})
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            told[choice.index] += choice.delta.content or ""
            if choice.finish_reason:
                ends[choice.index] = choice.finish_reason
    assert [told[each.index] for each in whole.choices] == [
        each.message.content for each in whole.choices
    ]
    assert ends == {each.index: each.finish_reason for each in whole.choices}
    assert usage is not None
    assert usage.completion_tokens == whole.usage.completion_tokens


def test_a_stream_comes_in_pieces(client: openai.OpenAI) -> None:
    pieces = [
        each.choices[0].text for each in complete(client, stream=True, max_tokens=12, temperature=0)
    ]
    assert len([piece for piece in pieces if piece]) > 1
    assert "".join(pieces) == complete(client, max_tokens=12, temperature=0).choices[0].text


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_text_ends_the_completion_before_itself(client: openai.OpenAI, stream: bool) -> None:
    plain = complete(client, max_tokens=40, temperature=0)
    text = plain.choices[0].text
    stop = text[6:9]
    found = complete(client, max_tokens=40, temperature=0, stop=[stop, "never"], stream=stream)
    if stream:
        chunks = list(found)
        said = "".join(each.choices[0].text for each in chunks)
        assert chunks[-1].choices[0].finish_reason == "stop"
    else:
        said = found.choices[0].text
        assert found.choices[0].finish_reason == "stop"
        assert found.usage.completion_tokens < plain.usage.completion_tokens
    assert said == text[: text.index(stop)]


@pytest.mark.parametrize("max_tokens", [0, 1])
def test_echo_gives_the_prompt_its_log_probabilities(
    client: openai.OpenAI, max_tokens: int
) -> None:
    tokens = [3, 5, 7, 11, 13]
    found = complete(
        client, prompt=[tokens, tokens[:3]], echo=True, logprobs=1, max_tokens=max_tokens,
        temperature=0,
    )  # fmt: skip
    long, short = (each.logprobs for each in found.choices)
    assert len(long.token_logprobs) == len(long.tokens) == len(tokens) + max_tokens
    assert long.token_logprobs[0] is None
    assert long.top_logprobs[0] is None
    # A prefix's numbers don't depend on what follows it.
    assert long.token_logprobs[1:3] == pytest.approx(short.token_logprobs[1:3], abs=1e-4)
    for value, row in zip(long.token_logprobs[1:], long.top_logprobs[1:], strict=True):
        assert value in row.values()
        assert max(row.values()) < 0
    if max_tokens:
        # Greedy: the token itself is the most probable one, to the last bit.
        assert long.token_logprobs[-1] == max(long.top_logprobs[-1].values())
    assert found.choices[0].text.startswith("dfhln")
    assert long.text_offset[:5] == [0, 1, 2, 3, 4]


def test_chat_log_probabilities_are_those_of_the_model(client: openai.OpenAI) -> None:
    found = chat(client, logprobs=True, top_logprobs=3, temperature=0)
    content = found.choices[0].logprobs.content
    assert len(content) == found.usage.completion_tokens
    for entry in content:
        assert len(entry.top_logprobs) == 3
        assert entry.logprob == entry.top_logprobs[0].logprob
        assert sum(math.exp(each.logprob) for each in entry.top_logprobs) <= 1 + 1e-6
    late = list(chat(client, logprobs=True, top_logprobs=3, temperature=0, stream=True))
    streamed = [each.choices[0].logprobs for each in late if each.choices[0].logprobs is not None]
    assert [each.model_dump() for each in streamed[0].content] == [
        each.model_dump() for each in content
    ]


def test_requests_that_come_together_are_answered_as_alone(client: openai.OpenAI) -> None:
    prompts = [f"tell me about {number}" for number in range(24)]

    def ask(prompt: str) -> str:
        text: str = complete(client, prompt=prompt, max_tokens=16).choices[0].text
        return text

    alone = [ask(prompt) for prompt in prompts]
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        together = list(pool.map(ask, prompts))
    # Sums of a wider batch round otherwise, which may turn a near tie of the sampling race.
    assert sum(a == b for a, b in zip(alone, together, strict=True)) >= 22


def test_who_hangs_up_takes_the_work_along(client: openai.OpenAI) -> None:
    stream = complete(client, stream=True, max_tokens=900, temperature=1, stop=["never"])
    next(iter(stream))
    stream.close()
    assert complete(client, max_tokens=2).choices[0].finish_reason in ("length", "stop")


def test_our_own_evaluation_asks_it_too(root: str, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "prime_core", "eval", "arithmetic", "--endpoint", root,
        "--model", "tiny", "--tasks", "4", "--max-tokens", "6", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 completions" in done.stdout + done.stderr


BAD: list[tuple[dict[str, Any], str]] = [
    ({"temperature": -1}, "temperature"),
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": 1e-7}, "temperature"),
    ({"n": 0}, "n"),
    ({"max_tokens": -3}, "max_tokens"),
    ({"max_tokens": 5000}, "max_tokens"),
    ({"stop": [""]}, "stop"),
    ({"prompt": []}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": [1, 10**9]}, "prompt"),
    ({"prompt": {"a": 1}}, "prompt"),
    ({"logprobs": 21}, "logprobs"),
    ({"top_p": 0.9}, "top_p"),
    ({"presence_penalty": 1.0}, "presence_penalty"),
    ({"best_of": 3}, "best_of"),
    ({"extra_body": {"top_k": 5}}, "top_k"),
]


@pytest.mark.parametrize(("options", "field"), BAD)
def test_what_cannot_be_done_is_refused_with_the_field(
    client: openai.OpenAI, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        complete(client, **options)
    assert caught.value.body["param"] == field
    assert caught.value.body["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "options",
    [
        {"messages": []},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]},
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"response_format": {"type": "json_object"}},
        {"max_tokens": 10**6},
    ],
)
def test_chats_that_cannot_be_had_are_refused(
    client: openai.OpenAI, options: dict[str, Any]
) -> None:
    with pytest.raises(openai.BadRequestError):
        chat(client, **options)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[1]", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"model": "tiny", "prompt": "\\ud800"}', 400),
        (b'{"model": "tiny", "prompt": "a", "temperature": NaN}', 400),
        (b'{"prompt": "a"}', 400),
        (b'{"model": "other", "prompt": "a"}', 404),
        (b" " * (17 << 20), 413),
    ],
)
def test_bytes_of_any_kind_get_an_error_in_the_known_shape(
    root: str, body: bytes, status: int
) -> None:
    found = httpx.post(
        f"{root}/completions", content=body, headers={"Content-Type": "application/json"}
    )
    assert found.status_code == status
    assert set(found.json()["error"]) == {"message", "type", "param", "code"}


def test_other_paths_methods_types_and_names_are_refused(root: str) -> None:
    assert httpx.get(f"{root}/engines").status_code == 404
    assert httpx.get(f"{root}/completions").status_code == 405
    assert httpx.post(f"{root}/completions", content=b"{}").status_code == 415
    found = httpx.get(f"{root}/models", headers={"Host": "evil.example"})
    assert (found.status_code, found.json()["error"]["type"]) == (403, "permission_error")
