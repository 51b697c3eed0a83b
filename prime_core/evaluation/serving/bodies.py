"""The requests of the endpoint, read strictly: an unknown or unsupported field is refused.

Called by `app` with the bytes of a request. Fields that change nothing at their neutral value
(top_p = 1, no penalties, no tools) are taken at that value only.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from prime_core.api import Message
from prime_core.engines.fitting import MIN_TEMPERATURE
from prime_core.evaluation.serving.refusals import Refused

MOST_ALTERNATIVES = 20  # as OpenAI's top_logprobs

Body = TypeVar("Body", bound=BaseModel)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _stops(value: Any) -> Any:
    given = [] if value is None else [value] if isinstance(value, str) else value
    if isinstance(given, list) and not all(isinstance(each, str) and each for each in given):
        raise ValueError("must be a text or a list of texts, none of them empty")
    return given


def _temperature(value: float) -> float:
    if 0 < value < MIN_TEMPERATURE:
        raise ValueError(f"must be 0, which is greedy, or at least {MIN_TEMPERATURE:g}")
    return value


class StreamOptions(_Strict):
    """`stream_options`."""

    include_usage: bool = False


class Sampled(_Strict):
    """What both kinds of request share."""

    model: str
    n: int = Field(default=1, ge=1, le=128)
    temperature: Annotated[float, AfterValidator(_temperature)] = Field(
        default=1.0, ge=0, le=2, allow_inf_nan=False
    )
    seed: int | None = None
    stop: Annotated[list[str], BeforeValidator(_stops), Field(max_length=32)] = []
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    # Neutral values only: the engine samples from the whole distribution, as the trainer needs it.
    top_p: Literal[1, None] = None
    frequency_penalty: Literal[0, None] = None
    presence_penalty: Literal[0, None] = None
    logit_bias: dict[str, float] | None = Field(default=None, max_length=0)


class CompletionBody(Sampled):
    """Body of /v1/completions."""

    prompt: Any
    max_tokens: int | None = Field(default=16, ge=0)
    logprobs: int | None = Field(default=None, ge=0, le=MOST_ALTERNATIVES)
    echo: bool = False
    best_of: int | None = None
    suffix: None = None

    def prompts(self) -> list[str | tuple[int, ...]]:
        """Every prompt: a text or token ids.

        Raises:
            Refused: it is neither, nor a list of one of them.
        """
        if isinstance(self.prompt, str):
            return [self.prompt]
        if isinstance(self.prompt, list) and self.prompt:
            if all(_is_token(each) for each in self.prompt):
                return [tuple(self.prompt)]
            if all(isinstance(each, str) for each in self.prompt):
                return list(self.prompt)
            if all(
                isinstance(each, list) and each and all(map(_is_token, each))
                for each in self.prompt
            ):
                return [tuple(each) for each in self.prompt]
        raise Refused(
            "prompt: a text, a list of texts, a list of token ids or a list of such lists",
            param="prompt",
        )


class TextPart(_Strict):
    """A piece of a chat message."""

    type: Literal["text"]
    text: str


class ChatMessage(_Strict):
    """One message; other parts than text can't be read by the models that are served."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]
    name: str | None = None

    def message(self) -> Message:
        """As chat templates know it; `developer` is what OpenAI calls system now."""
        text = (
            self.content
            if isinstance(self.content, str)
            else "".join(part.text for part in self.content)
        )
        role = "system" if self.role == "developer" else self.role
        return Message(role, text)


class ResponseFormat(_Strict):
    """`response_format`: text alone."""

    type: Literal["text"]


class ChatBody(Sampled):
    """Body of /v1/chat/completions."""

    messages: list[ChatMessage] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    logprobs: bool = False
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_ALTERNATIVES)
    response_format: ResponseFormat | None = None
    tools: list[Any] | None = Field(default=None, max_length=0)
    tool_choice: Literal["none", "auto", None] = None


def read_body(data: bytes, kind: type[Body]) -> Body:
    """Parse and validate.

    Raises:
        Refused: it isn't JSON, or a field is unknown, unsupported or wrong; the first one is named.
    """
    try:
        values = json.loads(data, parse_constant=_no_constant)
        json.dumps(values, ensure_ascii=False).encode()  # a lone surrogate is no text
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body isn't JSON that can be read: {error}") from error
    if not isinstance(values, dict):
        raise Refused("the body must be a JSON object")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _refused(first["loc"], first["type"], first["msg"]) from error


def _refused(loc: tuple[int | str, ...], kind: str, message: str) -> Refused:
    place = ".".join(map(str, loc))
    if kind == "extra_forbidden":
        return Refused(f"{place}: this endpoint knows no such parameter", param=place)
    if kind == "missing":
        return Refused(f"{place}: it must be given", param=place)
    return Refused(f"{place}: {message.removeprefix('Value error, ')}", param=place)


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
