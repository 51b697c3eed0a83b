"""Registers the engine `openai`; imports httpx only when the engine is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from prime_core.api import Context, InferenceEngineSpec, Params, hookimpl

if TYPE_CHECKING:
    from prime_core.engines.openai.engine import OpenAIEngine

# What the engine sets itself for each request; a different value in `extra` would be a lie.
OWN_FIELDS = ("model", "messages", "temperature", "seed", "n", "stream")

UNTRAINABLE = (
    "an endpoint returns text, not the token ids and log-probabilities that the importance ratio "
    "is made of, can't load a policy that the trainer publishes, and can prove nothing"
)


class OpenAIParams(Params):
    """Parameters of the engine `openai`."""

    base_url: str = Field(description="URL that /chat/completions is appended to, e.g. .../v1")
    model: str = Field(min_length=1, description="name of the model at the endpoint")
    api_key: SecretStr | None = Field(
        None, description="env:NAME of the variable that holds the key; no key unless set"
    )
    concurrency: int = Field(8, ge=1, le=4096, description="requests under way at once")
    retries: int = Field(
        6, ge=0, le=100, description="further tries after 429, 5xx, timeouts and lost connections"
    )
    timeout_s: float = Field(600.0, gt=0, description="seconds that an answer may take")
    backoff_s: float = Field(1.0, gt=0, description="first pause before a retry, then doubled")
    max_backoff_s: float = Field(60.0, gt=0, description="longest pause, unless Retry-After asks")
    price_prompt: float = Field(0.0, ge=0, description="price of a million prompt tokens")
    price_completion: float = Field(0.0, ge=0, description="price of a million completion tokens")
    token_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="what the endpoint calls the token limit"
    )
    extra: dict[str, Any] = Field(
        default_factory=dict, description="further fields of each request, e.g. reasoning_effort"
    )

    @field_validator("base_url")
    @classmethod
    def _url_without_secrets(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("base_url must start with http:// or https:// and name a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("base_url must hold no user, password or query; use api_key")
        return value.rstrip("/")

    @field_validator("extra")
    @classmethod
    def _extra_adds_only(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(value.keys() & {*OWN_FIELDS, "max_tokens", "max_completion_tokens"})
        if taken:
            raise ValueError(f"extra can't set {', '.join(taken)}: the engine sets them itself")
        return value


def make(params: OpenAIParams, context: Context) -> OpenAIEngine:
    """Factory of the spec."""
    from prime_core.engines.openai.engine import OpenAIEngine

    return OpenAIEngine(params)


@hookimpl
def prime_inference_engines() -> list[InferenceEngineSpec]:
    """The engine of this module."""
    return [
        InferenceEngineSpec(
            name="openai",
            params=OpenAIParams,
            factory=make,
            summary="OpenAI-compatible endpoints, for evaluation alone: no tokens, no proofs",
            untrainable=UNTRAINABLE,
        )
    ]
