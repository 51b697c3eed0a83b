"""Messages to tokens and back, token-in/token-out: what the model said is never tokenised again.

Used by workers and evaluation (prompts), by `turns` (replies) and by validators (both). A reply's
tokens are what the chat template puts after the model's turn, found with a sentinel in the model's
place. Invariant: what a message says never becomes a control token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from prime_core.api import EngineError, Message, RunError
from prime_core.api.types import Role
from prime_core.engines.inert import Inert
from prime_core.engines.stop_tokens import stop_tokens

# No template trims, escapes or repeats it.
SENTINEL = "prime-core-7f3a9c-sentinel"

_PROBES: tuple[tuple[Role, ...], ...] = (
    ("user",),
    ("system", "user"),
    ("user", "assistant", "user"),
    ("user", "assistant", "tool"),
)


class ChatFormat:
    """A tokenizer with its chat template.

    Raises:
        RunError: the tokenizer has no chat template.
    """

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise RunError(
                "the tokenizer has no chat template",
                where="[model]",
                fix="set [model] chat_template, or add one to the tokenizer's files",
            )
        self._tokenizer = tokenizer
        self._inert = Inert(tokenizer, list(self._probes()), _ends(tokenizer))

    def prompt_tokens(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Tokens of a prompt, up to where the model begins to speak.

        Raises:
            RunError: the template refuses the messages.
        """
        shown, hidden = self._inert.hide(messages)
        return self._inert.encode(self._render(shown), hidden)

    def reply_tokens(
        self, messages: Sequence[Message], reply: Sequence[Message], last_token: int
    ) -> tuple[int, ...]:
        """Tokens between the model's last turn and its next one.

        Args:
            messages: everything so far; the last one is the model's.
            reply: the environment's answer.
            last_token: the model's last token; where it's the end marker that the template writes,
                the marker isn't written twice.

        Raises:
            RunError: the template refuses the messages or drops the model's turn.
        """
        others, hidden = self._inert.hide([*messages[:-1], *reply])
        before, after_it = others[: len(messages) - 1], others[len(messages) - 1 :]
        sentinel = SENTINEL
        while any(sentinel in message.content for message in others):
            sentinel += "-x"  # somebody says it, to stop the rollout or by accident
        text = self._render([*before, Message("assistant", sentinel), *after_it])
        if text.count(sentinel) != 1:
            raise RunError(
                f"the chat template shows an earlier turn {text.count(sentinel)} times, not once",
                where="[model] chat_template",
                fix="use a template that keeps the whole conversation",
            )
        after = text.partition(sentinel)[2]
        end = self._tokenizer.decode([last_token])
        return self._inert.encode(after.removeprefix(end), hidden)

    def text(self, tokens: Sequence[int]) -> str:
        """What the model said in one turn, without special tokens."""
        decoded: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return decoded

    def _probes(self) -> Iterator[str]:
        """What the template writes around messages of the roles that it knows."""
        for roles in _PROBES:
            with contextlib.suppress(Exception):  # where such messages come, it is told
                yield self._render([Message(role, SENTINEL) for role in roles])

    def _render(self, messages: Sequence[Message]) -> str:
        from jinja2 import TemplateError

        plain = [{"role": message.role, "content": message.content} for message in messages]
        try:
            text: str = self._tokenizer.apply_chat_template(
                plain, tokenize=False, add_generation_prompt=True
            )
        except (TemplateError, ValueError, TypeError) as error:
            roles = ", ".join(message.role for message in messages)
            raise RunError(
                f"the chat template refuses messages of roles {roles}: {error}",
                where="[model] chat_template",
                fix="use a template that knows these roles, or change the environment's messages",
            ) from error
        return text


def _ends(tokenizer: Any) -> frozenset[int]:
    """The tokens that end a turn, of the directory that the tokenizer was read from."""
    home = getattr(tokenizer, "name_or_path", None)
    if not home:
        return frozenset()
    try:
        return stop_tokens(Path(home))
    except EngineError:  # the engine says so
        return frozenset()
