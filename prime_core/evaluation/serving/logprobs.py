"""Log-probabilities of a choice in the two forms that OpenAI's endpoints have.

Called by `answers`. They are of the model's own distribution (temperature 1) at every temperature,
and count the token that ended the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prime_core.evaluation.serving.choices import Choice
from prime_core.evaluation.serving.texts import Decoder


def completion_logprobs(choice: Choice) -> dict[str, Any] | None:
    """`logprobs` of a choice of /v1/completions: parallel lists, one entry a token.

    With echo the prompt's tokens come first; the first of them follows nothing and has null. The
    most probable alternative's number is the same float as the token's own where they are one.
    """
    if choice.prefill is None:
        return None
    wish = choice.wish
    shown = [*(wish.prompt if wish.echo else ()), *choice.tokens]
    missing = len(shown) - len(choice.prefill.logprobs)
    name = choice.desk.token_text
    values: list[float | None] = [None] * missing + [
        float(value) for value in choice.prefill.logprobs
    ]
    top: list[dict[str, float] | None] = [None] * missing
    for position, value in enumerate(values[missing:], start=missing):
        assert value is not None
        alternatives = choice.prefill.top[position - missing] if choice.prefill.top else ()
        row: dict[str, float] = {}
        for token, logprob in alternatives:
            row.setdefault(name(token), logprob)  # two tokens may read alike: the better one
        row.setdefault(name(shown[position]), value)
        top.append(row)
    return {
        "tokens": [name(token) for token in shown],
        "token_logprobs": values,
        "top_logprobs": top,
        "text_offset": _offsets(choice, shown),
    }


def chat_logprobs(choice: Choice) -> dict[str, Any] | None:
    """`logprobs` of a choice of /v1/chat/completions: an entry a token."""
    if choice.prefill is None:
        return None
    name = choice.desk.token_text
    rows = choice.prefill.top or ((),) * len(choice.tokens)
    return {
        "content": [
            {
                **_entry(name, token, float(value)),
                "top_logprobs": [_entry(name, other, logprob) for other, logprob in row],
            }
            for token, value, row in zip(choice.tokens, choice.prefill.logprobs, rows, strict=True)
        ],
        "refusal": None,
    }


def _entry(name: Callable[[int], str], token: int, logprob: float) -> dict[str, Any]:
    text = name(token)
    whole = not text.startswith("token_id:")
    return {"token": text, "logprob": logprob, "bytes": list(text.encode()) if whole else None}


def _offsets(choice: Choice, shown: list[int]) -> list[int]:
    """Where each token's text begins in the answer's text."""
    before = () if choice.wish.echo else choice.wish.prompt
    decoder, offsets, at = Decoder(choice.desk.tokenizer, before), [], 0
    for token in shown:
        offsets.append(at)
        at += len(decoder.add(token))
    return offsets
