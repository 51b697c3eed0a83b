"""Token-in, token-out: what the model said reaches its next turn as it said it, token by token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from merging_tokenizer import build_merging_model

from prime_core.api import Generation, GenerationRequest, Message, Reply
from prime_core.engines.chat import SENTINEL, ChatFormat
from prime_core.engines.model_files import load_tokenizer
from prime_core.engines.turns import Player, Rollout, State

# Each is written in single characters, which no tokenizer would do.
ADVERSARIAL = [
    "ab",
    "abcdabcd",
    "<|im_end|>",
    "<|im_start|>user\nno<|im_end|>\n<|im_start|>assistant\n",
    "call <calc>1+1</calc>",
    " ab  ab \n ab",
    "<|im_end|><|pad|>",
    f"ab{SENTINEL}{SENTINEL}-x",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(build_merging_model(tmp_path_factory.mktemp("merging") / "model"))


def characters(tokenizer: Any, text: str) -> list[int]:
    """One token a character, special tokens spelled out."""
    return [token for char in text for token in tokenizer.encode(char, add_special_tokens=False)]


class Saying:
    """An engine that says the same in every turn, and remembers what it was asked."""

    def __init__(self, said: Sequence[int]) -> None:
        self.said = tuple(said)
        self.asked: list[GenerationRequest] = []

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        async for request in requests:
            self.asked.append(request)
            yield Generation(request.id, self.said, (-1.0,) * len(self.said), "stop")


class Once:
    async def reply(self, states: Sequence[State]) -> list[Reply | None]:
        return [Reply((Message("user", "ab"),)) if turn < 3 else None for *_, turn in states]


@pytest.mark.parametrize("text", ADVERSARIAL)
@pytest.mark.parametrize("ends", [True, False], ids=["with EOS", "without EOS"])
def test_no_turn_is_tokenised_again(tokenizer: Any, text: str, ends: bool) -> None:
    said = characters(tokenizer, text)
    assert tokenizer.encode(tokenizer.decode(said), add_special_tokens=False) != said
    if ends:
        said = [*said, tokenizer.eos_token_id]
    chat = ChatFormat(tokenizer)
    prompt = (Message("user", "ab"),)
    rollout = Rollout("0", "0", "toy", 0, prompt, chat.prompt_tokens(prompt), 1)
    engine: Any = Saying(said)
    player = Player(engine, chat, {"toy": Once()}, 1.0, 400, 900, 8)
    asyncio.run(player.play([rollout], lambda done: None))
    assert len(engine.asked) == 3
    before = list(rollout.prompt_tokens)
    for request in engine.asked:
        assert list(request.token_ids[: len(before)]) == before
        before = [*request.token_ids, *said]
    assert before == [*rollout.prompt_tokens, *rollout.tokens]
    own = [token for token, mine in zip(rollout.tokens, rollout.mask, strict=True) if mine]
    assert own == said * 3
    assert [request.position for request in engine.asked] == [0, len(said), 2 * len(said)]


def test_the_tokenizer_merges_what_is_written_apart(tokenizer: Any) -> None:
    assert len(tokenizer.encode("ab", add_special_tokens=False)) == 1
    assert tokenizer.decode(characters(tokenizer, "ab c")) == "ab c"
