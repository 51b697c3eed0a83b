"""The JSON of answers, whole and in chunks, for the two endpoints.

Called by `app`; one form an endpoint, so that running a job and sending it know nothing of either.
"""

from __future__ import annotations

import time
import uuid
from typing import Any, Protocol

from prime_core.evaluation.serving.choices import Choice
from prime_core.evaluation.serving.desk import Desk
from prime_core.evaluation.serving.jobs import Job
from prime_core.evaluation.serving.logprobs import chat_logprobs, completion_logprobs


class Form(Protocol):
    """How an endpoint writes choices."""

    prefix: str
    whole_name: str
    chunk_name: str

    def whole(self, choice: Choice) -> dict[str, Any]:
        """A finished choice."""
        ...

    def opening(self, choice: Choice) -> dict[str, Any] | None:
        """The choice's first chunk, before anything was said; None without one."""
        ...

    def piece(self, choice: Choice, text: str) -> dict[str, Any]:
        """A chunk with text."""
        ...

    def ending(self, choice: Choice, text: str) -> dict[str, Any]:
        """The last chunk: why it ended; with log-probabilities the whole text, which `text` is."""
        ...


class CompletionForm:
    """/v1/completions."""

    prefix, whole_name, chunk_name = "cmpl", "text_completion", "text_completion"

    def whole(self, choice: Choice) -> dict[str, Any]:
        """See `Form`."""
        return self._choice(choice, _prompt_text(choice) + choice.text, ended=True)

    def opening(self, choice: Choice) -> dict[str, Any] | None:
        """The prompt, with echo."""
        return self._choice(choice, _prompt_text(choice)) if choice.wish.echo else None

    def piece(self, choice: Choice, text: str) -> dict[str, Any]:
        """See `Form`."""
        return self._choice(choice, text)

    def ending(self, choice: Choice, text: str) -> dict[str, Any]:
        """See `Form`."""
        return self._choice(choice, text, ended=True)

    def _choice(self, choice: Choice, text: str, *, ended: bool = False) -> dict[str, Any]:
        return {
            "index": choice.index,
            "text": text,
            "logprobs": completion_logprobs(choice) if ended else None,
            "finish_reason": choice.finish if ended else None,
        }


class ChatForm:
    """/v1/chat/completions."""

    prefix, whole_name, chunk_name = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def whole(self, choice: Choice) -> dict[str, Any]:
        """See `Form`."""
        return {
            "index": choice.index,
            "message": {"role": "assistant", "content": choice.text, "refusal": None},
            "logprobs": chat_logprobs(choice),
            "finish_reason": choice.finish,
        }

    def opening(self, choice: Choice) -> dict[str, Any] | None:
        """Who speaks."""
        return self._delta(choice, {"role": "assistant", "content": ""})

    def piece(self, choice: Choice, text: str) -> dict[str, Any]:
        """See `Form`."""
        return self._delta(choice, {"content": text})

    def ending(self, choice: Choice, text: str) -> dict[str, Any]:
        """See `Form`."""
        last = self._delta(choice, {"content": text} if text else {})
        return {**last, "logprobs": chat_logprobs(choice), "finish_reason": choice.finish}

    def _delta(self, choice: Choice, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": None}


class Answer:
    """One answer's head, which all of its chunks repeat."""

    def __init__(self, desk: Desk, form: Form) -> None:
        self.form = form
        self._head = {"id": f"{form.prefix}-{uuid.uuid4().hex}", "created": int(time.time())}
        self._tail = {
            "model": desk.facts.name,
            "system_fingerprint": desk.engine.capabilities.fingerprint,
        }

    def whole(self, job: Job) -> dict[str, Any]:
        """The answer in one piece."""
        choices = [self.form.whole(choice) for choice in job.choices]
        return {**self._with(self.form.whole_name, choices), "usage": job.usage}

    def chunk(self, choice: dict[str, Any]) -> dict[str, Any]:
        """One chunk of a stream."""
        return self._with(self.form.chunk_name, [choice])

    def usage(self, job: Job) -> dict[str, Any]:
        """The chunk of `include_usage`, which has no choice."""
        return {**self._with(self.form.chunk_name, []), "usage": job.usage}

    def _with(self, name: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._head, "object": name, **self._tail, "choices": choices}


def _prompt_text(choice: Choice) -> str:
    if not choice.wish.echo:
        return ""
    text: str = choice.desk.tokenizer.decode(
        list(choice.wish.prompt), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text
