"""Prompts, replies between turns, and text, with a ChatML template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prime_core.api import Message, RunError
from prime_core.engines.chat import ChatFormat
from prime_core.engines.model_files import load_tokenizer


@pytest.fixture(scope="module")
def tokenizer(model_dirs: dict[str, Path]) -> Any:
    return load_tokenizer(model_dirs["tied"])


@pytest.fixture(scope="module")
def chat(tokenizer: Any) -> ChatFormat:
    return ChatFormat(tokenizer)


USER = Message("user", "what is 2+2?")


def test_a_prompt_ends_where_the_model_begins(chat: ChatFormat, tokenizer: Any) -> None:
    text = tokenizer.decode(chat.prompt_tokens([USER]))
    assert text == "<|im_start|>user\nwhat is 2+2?<|im_end|>\n<|im_start|>assistant\n"


def test_a_reply_continues_the_conversation_without_a_second_end(
    chat: ChatFormat, tokenizer: Any
) -> None:
    said = Message("assistant", "5")
    reply = [Message("user", "no")]
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokens = chat.reply_tokens([USER, said], reply, end)
    assert tokenizer.decode(tokens) == "\n<|im_start|>user\nno<|im_end|>\n<|im_start|>assistant\n"
    # Tokens of prompt, completion and reply are exactly the tokens of the whole conversation.
    whole = chat.prompt_tokens([USER, said, *reply])
    spoken = (*tokenizer.encode("5", add_special_tokens=False), end)
    assert chat.prompt_tokens([USER]) + spoken + tokens == whole


def test_a_turn_without_its_end_gets_one(chat: ChatFormat, tokenizer: Any) -> None:
    five = tokenizer.encode("5", add_special_tokens=False)[0]
    tokens = chat.reply_tokens([USER, Message("assistant", "5")], [Message("user", "no")], five)
    assert tokenizer.decode(tokens).startswith("<|im_end|>\n<|im_start|>user")


def test_text_is_without_special_tokens(chat: ChatFormat, tokenizer: Any) -> None:
    assert chat.text(tokenizer.encode("a b\n<|im_end|>", add_special_tokens=False)) == "a b\n"


def test_templates_that_cannot_work_say_so(model_dirs: dict[str, Path]) -> None:
    with pytest.raises(RunError, match="no chat template"):
        ChatFormat(load_tokenizer(model_dirs["tied"], ""))
    refusing = "{{ raise_exception('only one message') }}"
    with pytest.raises(RunError, match="only one message"):
        ChatFormat(load_tokenizer(model_dirs["tied"], refusing)).prompt_tokens([USER])
    dropping = "{% for m in messages if m['role'] == 'user' %}{{ m['content'] }}{% endfor %}"
    with pytest.raises(RunError, match="0 times, not once"):
        ChatFormat(load_tokenizer(model_dirs["tied"], dropping)).reply_tokens(
            [USER, Message("assistant", "5")], [USER], 0
        )
