"""Which model an endpoint serves, and the engine section that reaches it; for `prime-core eval`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr, ValidationError

from prime_core.api.errors import EngineError, RunError

DEFAULT_KEY = "OPENAI_API_KEY"


def endpoint_engine(
    url: str, model: str | None, key_variable: str | None, params: Mapping[str, Any]
) -> dict[str, Any]:
    """`use` and `with` of an [engine] section for a model behind an endpoint; holds no secret.

    Args:
        model: its name there; None where the endpoint lists just one.
        key_variable: environment variable with the API key; None for OPENAI_API_KEY where it's set.
        params: further parameters of the engine.

    Raises:
        RunError: the variable isn't set, a parameter is wrong, or it isn't clear which model is
            meant.
        EngineError: the endpoint can't be asked for its models.
    """
    if key_variable is not None and key_variable not in os.environ:
        raise RunError(
            f"the environment variable {key_variable} isn't set",
            where="--api-key-env",
            fix=f"export {key_variable} before the command runs",
        )
    variable = key_variable or (DEFAULT_KEY if DEFAULT_KEY in os.environ else None)
    found = {"base_url": url, "model": model or "unknown", **params}
    if variable is not None:
        found["api_key"] = f"env:{variable}"
    names = asyncio.run(_models(found, variable)) if model is None else _checked(found, [model])
    if len(names) != 1:
        listed = ", ".join(names[:20]) or "none"
        raise RunError(
            f"the endpoint lists {len(names)} models: {listed}", where=url, fix="name one: --model"
        )
    return {"use": "openai", "with": {**found, "model": names[0]}}


def _checked(params: Mapping[str, Any], names: list[str]) -> list[str]:
    """The names, once the engine would take the parameters.

    Raises:
        RunError: it wouldn't.
    """
    from prime_core.engines.openai.plugin import OpenAIParams

    try:
        OpenAIParams.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise RunError(
            f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}",
            where="--endpoint",
            fix="correct it",
        ) from error
    return names


async def _models(params: Mapping[str, Any], variable: str | None) -> list[str]:
    from prime_core.engines.openai.endpoint import Endpoint, GaveUp
    from prime_core.engines.openai.plugin import OpenAIParams

    _checked(params, [])
    key = None if variable is None else SecretStr(os.environ[variable])
    endpoint = Endpoint(OpenAIParams.model_validate({**params, "api_key": key}))
    try:
        async with endpoint.client() as client:
            return await endpoint.models(client)
    except GaveUp as error:
        raise EngineError(
            f"the endpoint doesn't say which models it has: {error}",
            where=str(params["base_url"]),
            fix="name one: --model",
        ) from error
