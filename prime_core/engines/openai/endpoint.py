"""One OpenAI-compatible endpoint over HTTP: asks, waits, asks again, and reads the answer.

Used by the engine `openai`. Invariant: the API key is in the Authorization header and nowhere else;
whatever a server says is shown only after every occurrence of the key was struck out.
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from prime_core.api import EngineError, Usage
from prime_core.engines.openai.plugin import OpenAIParams

# Statuses after which the same request may succeed; 409 is what some servers say while loading.
RETRIED = frozenset({408, 409, 425, 429})
FATAL = frozenset({401, 402, 403, 404})  # no request of this run can succeed
LONGEST_RETRY_AFTER_S = 600.0
SHOWN = 300  # characters of a server's message
CONNECT_TIMEOUT_S = 30.0


class GaveUp(Exception):
    """One request can't be answered, or wasn't in all its tries; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said, how it ended, and what it took."""

    text: str
    finish_reason: str
    usage: Usage


@dataclass(slots=True)
class Traffic:
    """Requests sent, and those that were sent again."""

    requests: int = 0
    retries: int = 0


class Endpoint:
    """Talks to `base_url` through the client that each call is given."""

    def __init__(self, params: OpenAIParams) -> None:
        self._params = params
        self.traffic = Traffic()

    def client(self) -> httpx.AsyncClient:
        """A client for the event loop that runs; the caller closes it."""
        params = self._params
        headers = {"Accept": "application/json"}
        if params.api_key is not None:
            headers["Authorization"] = f"Bearer {params.api_key.get_secret_value()}"
        return httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(
                params.timeout_s, connect=min(CONNECT_TIMEOUT_S, params.timeout_s), pool=None
            ),
            limits=httpx.Limits(max_connections=params.concurrency),
        )

    async def chat(self, client: httpx.AsyncClient, body: Mapping[str, Any]) -> Answer:
        """One chat completion, tried as often as the parameters allow.

        Raises:
            GaveUp: this request failed.
            EngineError: no request can succeed: the key, the model or the URL is wrong.
        """
        return self._answer(await self._json(client, "POST", "/chat/completions", body))

    async def models(self, client: httpx.AsyncClient) -> list[str]:
        """Names of the models that the endpoint lists.

        Raises:
            GaveUp, EngineError: as `chat`.
        """
        found = await self._json(client, "GET", "/models", None)
        data = found.get("data")
        rows = data if isinstance(data, list) else []
        return [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]

    async def _json(
        self, client: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        url = f"{self._params.base_url}{path}"
        for attempt in range(self._params.retries + 1):
            wanted: float | None = None
            self.traffic.requests += 1
            try:
                response = await client.request(method, url, json=body)
            except httpx.TimeoutException as error:
                why = f"no answer within {self._params.timeout_s:g} s ({type(error).__name__})"
            except httpx.TransportError as error:
                why = self._clean(f"{type(error).__name__}: {error}")
            else:
                found = self._read(response)
                if isinstance(found, dict):
                    return found
                why, wanted = found, _retry_after(response)
            if attempt < self._params.retries:
                self.traffic.retries += 1
                await asyncio.sleep(self._pause(attempt, wanted))
        raise GaveUp(f"{why} ({self._params.retries + 1} tries)")

    def _read(self, response: httpx.Response) -> dict[str, Any] | str:
        """The answer; the reason where it's worth another try.

        Raises:
            GaveUp, EngineError: as `chat`.
        """
        status = response.status_code
        if status == 200:
            try:
                found = response.json()
            except (ValueError, RecursionError):
                return "the answer isn't JSON"
            if isinstance(found, dict) and not found.get("error"):
                return found
            return f"an error in the answer: {self._message(response)}"
        why = f"HTTP {status}: {self._message(response)}"
        if status in FATAL:
            raise EngineError(
                why,
                where=self._params.base_url,
                fix="check api_key, the model's name and base_url",
            )
        if status >= 500 or status in RETRIED:
            return why
        raise GaveUp(why)

    def _message(self, response: httpx.Response) -> str:
        try:
            found = response.json()
            error = found.get("error", found) if isinstance(found, dict) else found
            said = error.get("message", error) if isinstance(error, dict) else error
        except (ValueError, RecursionError):
            said = response.text
        return self._clean(" ".join(str(said).split()))

    def _clean(self, text: str) -> str:
        key = self._params.api_key
        if key is not None and key.get_secret_value():
            text = text.replace(key.get_secret_value(), "**********")
        return text[:SHOWN]

    def _pause(self, attempt: int, wanted: float | None) -> float:
        if wanted is not None:
            return min(wanted, LONGEST_RETRY_AFTER_S)
        longest = min(self._params.max_backoff_s, self._params.backoff_s * 2.0**attempt)
        return longest * random.uniform(0.5, 1.0)  # so that many don't come back at once

    def _answer(self, found: dict[str, Any]) -> Answer:
        try:
            choice = found["choices"][0]
            content, reason = choice["message"].get("content"), choice.get("finish_reason")
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise GaveUp(f"the answer has no choices[0].message ({error})") from error
        if reason == "content_filter":
            raise GaveUp("the endpoint filtered the answer")
        return Answer(
            _text(content), "length" if reason == "length" else "stop", self._usage(found)
        )

    def _usage(self, found: dict[str, Any]) -> Usage:
        usage = found.get("usage")
        counts = usage if isinstance(usage, dict) else {}
        prompt, completion = (
            count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
            for count in (counts.get("prompt_tokens"), counts.get("completion_tokens"))
        )
        price = prompt * self._params.price_prompt + completion * self._params.price_completion
        return Usage(prompt, completion, price / 1e6)


def _text(content: Any) -> str:
    """A message's content: text, parts of text, or nothing where the model only thought."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait; None where it doesn't say."""
    value = response.headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value) if value else None
        if date is None:
            return None
        seconds = email.utils.mktime_tz(date) - time.time()
    return max(0.0, seconds) if seconds == seconds else None
